"""`--complete SHELL`: completions of `sardonyx-opt` for bash, zsh and fish.

    eval "$(sardonyx-opt --complete bash)"

The names of passes and targets are those of the time when the script was made; plug-ins that are installed count.
"""

from __future__ import annotations

import argparse

from sardonyx.tools.opt_options import build_parser

_BASH = """\
_sardonyx_opt() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  if [[ "$word" == "=" ]]; then word=""; fi
  if [[ "$before" == "=" ]]; then before="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
  case "$before" in
    {pipelines})
      local head=""
      if [[ "$word" == *[,\\(]* ]]; then head="${{word%"${{word##*[,(]}}"}}"; fi
      COMPREPLY=($(compgen -P "$head" -W "{passes}" -- "${{word#"$head"}}"))
      compopt -o nospace 2>/dev/null; return;;
    {named}) COMPREPLY=($(compgen -W "{passes}" -- "$word")); return;;
    -t|--target) COMPREPLY=($(compgen -W "{targets}" -- "$word")); return;;
{choices}  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "{options}" -- "$word"))
  else
    COMPREPLY=($(compgen -f -X '!*.@(mlir|onnx|py)' -- "$word") $(compgen -d -S / -- "$word"))
  fi
}}
{extglob}complete -o default -F _sardonyx_opt sardonyx-opt
"""

_PIPELINES = ("-p", "--pass-pipeline", "--passes")
_NAMED = ("--help-pass", "--print-ir-before", "--print-ir-after", "--trace-rewrites", "--debug-counter")


def script(shell: str) -> str:
    """The script for a shell."""
    from sardonyx.passes import registry
    from sardonyx.passes.pipeline import PIPELINES
    from sardonyx.tools.opt_targets import targets

    passes = [*registry.names(), *PIPELINES]
    actions = [action for action in build_parser().actions if action.option_strings]
    if shell == "fish":
        return _fish(actions, passes, list(targets()))
    options = [name for action in actions for name in action.option_strings]
    choices = "".join(
        f"    {'|'.join(action.option_strings)}) "
        f'COMPREPLY=($(compgen -W "{" ".join(action.choices)}" -- "$word")); return;;\n'
        for action in actions
        if action.choices
    )
    text = _BASH.format(
        pipelines="|".join(_PIPELINES),
        named="|".join(_NAMED),
        passes=" ".join(passes),
        targets=" ".join(targets()),
        options=" ".join(options),
        choices=choices,
        extglob="shopt -s extglob\n" if shell == "bash" else "",
    )
    return text if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{text}"


def _fish(actions: list[argparse.Action], passes: list[str], targets: list[str]) -> str:
    lines = ["function __sardonyx_opt_passes", "  set -l head (string match -r '.*[,(]' -- (commandline -ct))"]
    lines += [f"  for name in {' '.join(passes)}", "    echo $head$name", "  end", "end"]
    for action in actions:
        words = ["complete -c sardonyx-opt"]
        for name in action.option_strings:
            words.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
        if set(action.option_strings) & set(_PIPELINES):
            words.append("-x -a '(__sardonyx_opt_passes)'")
        elif set(action.option_strings) & set(_NAMED):
            words.append(f"-x -a '{' '.join(passes)}'")
        elif "--target" in action.option_strings:
            words.append(f"-x -a '{' '.join(targets)}'")
        elif action.choices:
            words.append(f"-x -a '{' '.join(action.choices)}'")
        elif action.nargs != 0:
            words.append("-r")
        text = (action.help or "").replace("\\", "\\\\").replace("'", "\\'")
        lines.append(" ".join([*words, f"-d '{text}'"]))
    return "\n".join(lines) + "\n"
