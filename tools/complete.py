"""`sardonyx --complete SHELL`: completions of `sardonyx` for bash, zsh and fish.

    sardonyx --complete bash > ~/.local/share/bash-completion/completions/sardonyx

The script is complete in itself: pressing Tab starts no Python. Names of passes, targets and execution providers are
those of the time when it was made.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from sardonyx.tools.cli import COMMANDS, build_parser

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
_sardonyx() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" index
  if [[ "$word" == "=" ]]; then word=""; fi
  if [[ "$before" == "=" ]]; then before="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
  for (( index=1; index < COMP_CWORD; index++ )); do
    case "${{COMP_WORDS[index]}}" in -*) ;; *) command="${{COMP_WORDS[index]}}"; break;; esac
  done
  local options="{options}" words="{commands}" files=""
  case "$command" in
    "") ;;
{cases}    *) options="" words="" files="*";;
  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [[ -n "$files" ]]; then
      COMPREPLY+=($(compgen -f -X "!$files" -- "$word") $(compgen -d -S / -- "$word"))
    fi
  fi
}}
{extglob}complete -o default -F _sardonyx sardonyx
"""

_FILES = "*.@(onnx|onnxtxt|py|mlir|npz|npy|json)"
"""What the commands read."""


def script(shell: str) -> str:
    """The script for a shell."""
    parsers = {name: build_parser(name) for name in COMMANDS}
    commands = {name: _actions(parser, name) for name, parser in parsers.items()}
    general = [a for a in build_parser()._actions if a.option_strings]
    if shell == "fish":
        return _fish(general, commands)
    cases = "".join(_bash_case(name, actions) for name, actions in commands.items())
    text = _BASH.format(
        options=" ".join(_options(general)),
        commands=" ".join(COMMANDS),
        cases=cases,
        extglob="shopt -s extglob\n" if shell == "bash" else "",
    )
    return text if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{text}"


def _actions(parser: argparse.ArgumentParser, command: str) -> list[argparse.Action]:
    """The arguments of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            chosen: argparse.ArgumentParser = action.choices[command]
            return list(chosen._actions)
    raise ValueError(f"there is no command '{command}'")


def _options(actions: Sequence[argparse.Action]) -> list[str]:
    return [name for action in actions for name in action.option_strings]


def _values(action: argparse.Action) -> list[str] | None:
    """What an option may have as its value: words, nothing that could be said ([]), or a file (None)."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    names = set(action.option_strings)
    if "--target" in names:
        from sardonyx.frontend.onnx.targets import targets

        return targets()
    if "--ep" in names:
        from sardonyx.backends.onnx.parity import PROVIDERS

        return list(PROVIDERS)
    if "--passes" in names:
        from sardonyx.passes import registry
        from sardonyx.passes.pipeline import PIPELINES

        return [*PIPELINES, *registry.names()]
    shown = action.metavar if isinstance(action.metavar, str) else ""
    return None if shown.startswith(("FILE", "DIR")) else []


def _bash_case(name: str, actions: Sequence[argparse.Action]) -> str:
    """What is offered behind a command."""
    lines = [f"    {name})", f'      options="{" ".join(_options(actions))}"']
    words = [str(c) for a in actions if not a.option_strings and a.choices for c in a.choices]
    reads = any(not a.option_strings and not a.choices for a in actions)
    lines.append(f'      words="{" ".join(words)}" files="{_FILES if reads else ""}"')
    lines.append('      case "$before" in')
    for action in actions:
        if not action.option_strings or action.nargs == 0:
            continue
        values = _values(action)
        does = 'COMPREPLY=($(compgen -f -- "$word")); return' if values is None else "return"
        if values:
            does = f'COMPREPLY=($(compgen -W "{" ".join(values)}" -- "$word")); return'
        lines.append(f"        {'|'.join(action.option_strings)}) {does};;")
    return "\n".join([*lines, "      esac;;", ""])


def _fish(general: Sequence[argparse.Action], commands: Mapping[str, Sequence[argparse.Action]]) -> str:
    lines: list[str] = []
    first = "__fish_use_subcommand"
    for name, (_, summary) in COMMANDS.items():
        lines.append(f'complete -c sardonyx -f -n "{first}" -a {name} -d {_quoted(summary)}')
    lines += [_fish_option(first, action) for action in general]
    for name, actions in commands.items():
        seen = f"__fish_seen_subcommand_from {name}"
        for action in actions:
            if action.option_strings:
                lines.append(_fish_option(seen, action))
            elif action.choices:
                words = " ".join(map(str, action.choices))
                lines.append(f'complete -c sardonyx -n "{seen}" -a {_quoted(words)}')
    return "\n".join(lines) + "\n"


def _fish_option(condition: str, action: argparse.Action) -> str:
    words = [f'complete -c sardonyx -n "{condition}"']
    words += [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in action.option_strings]
    values = _values(action) if action.nargs != 0 else None
    if action.nargs != 0:
        words.append("-r" if values is None else "-x")
    if values:
        words.append(f"-a {_quoted(' '.join(values))}")
    return " ".join([*words, f"-d {_quoted(action.help or '')}"])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
