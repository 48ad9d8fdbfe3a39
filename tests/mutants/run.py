"""Tries many mutants: `python tests/mutants/run.py --every 5 --output results.jsonl --markdown survivors.md`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

import single_changes  # noqa: E402
import trial  # noqa: E402


def chosen(every: int, files: list[str]) -> list[single_changes.Mutant]:
    """Every so manieth mutant of each file."""
    out: list[single_changes.Mutant] = []
    for stem in files or list(trial.PASSES_OF):
        out += single_changes.mutants_of(trial.ROOT / "passes" / f"{stem}.py", f"{stem}.py")[::every]
    return out


def listed(path: Path) -> list[single_changes.Mutant]:
    """The mutants that a file lists, found again by what they change.

    Raises:
        SystemExit: One is not there any more.
    """
    out: list[single_changes.Mutant] = []
    for line in filter(None, path.read_text("utf-8").splitlines()):
        stem, before, after = (part.strip() for part in line.split(" | "))
        of_file = single_changes.mutants_of(trial.ROOT / "passes" / f"{stem}.py", f"{stem}.py")
        found = [m for m in of_file if (m.before, m.after) == (before, after)]
        if not found:
            raise SystemExit(f"there is no mutant `{before}` → `{after}` of {stem}.py any more: choose another one")
        out.append(found[0])
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=5, help="try every Nth mutant of a file")
    parser.add_argument("--files", nargs="*", default=[], metavar="STEM", help="of these files only")
    parser.add_argument(
        "--only", type=Path, help="a file of `STEM | before | after` lines: try these, all must be caught"
    )
    parser.add_argument("--near", action="store_true", help="on the cases of their passes and of cases/ only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, help="where the results go, one JSON a line; those there are not redone")
    parser.add_argument("--markdown", type=Path, help="where the table and the survivors go")
    parser.add_argument(
        "--results", nargs="*", type=Path, default=[], help="report these files of results, try nothing"
    )
    options = parser.parse_args()
    if options.results:
        text = report([item for path in options.results for item in _read(path)])
        if options.markdown is not None:
            options.markdown.write_text(text, encoding="utf-8")
        print(text)
        return 0
    if early := trial.loaded_too_early():
        raise SystemExit(f"imported too early: {early}")
    mutants = listed(options.only) if options.only is not None else chosen(options.every, options.files)
    own = {name for m in mutants for name in trial.PASSES_OF[m.file.removesuffix(".py")]}
    cases = trial.corpus([*own, *trial.NEAR] if options.near or options.only is not None else None)
    print(f"{len(mutants)} mutants, {len(cases)} cases", file=sys.stderr)
    known = _known(options.output)
    real = {
        stem: trial.try_mutant(stem, None, cases, None)[1]
        for stem in {m.file.removesuffix(".py") for m in mutants if _key(m) not in known}
    }

    def one(mutant: single_changes.Mutant) -> trial.Result:
        if (found := known.get(_key(mutant))) is not None:
            return found
        stem = mutant.file.removesuffix(".py")
        result, _ = trial.try_mutant(stem, mutant.number, cases, real[stem])
        print(f"{result.verdict:9s} {mutant}", file=sys.stderr, flush=True)
        if options.output is not None:
            with options.output.open("a") as out:
                out.write(json.dumps({**vars(mutant), "result": vars(result), "verdict": result.verdict}) + "\n")
        return result

    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(zip(mutants, pool.map(one, mutants), strict=True))
    text = report(results)
    if options.markdown is not None:
        options.markdown.write_text(text)
    print(text)
    if options.only is not None:
        return int(any(result.verdict != "caught" for _, result in results))
    return 0


def _key(mutant: single_changes.Mutant) -> tuple[str, int, str, str]:
    return mutant.file, mutant.number, mutant.before, mutant.after


def _known(path: Path | None) -> dict[tuple[str, int, str, str], trial.Result]:
    """The results of a run that was broken off."""
    if path is None or not path.exists():
        return {}
    return {_key(mutant): result for mutant, result in _read(path)}


def _read(path: Path) -> list[tuple[single_changes.Mutant, trial.Result]]:
    """What a file of results holds."""
    out: list[tuple[single_changes.Mutant, trial.Result]] = []
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        result = trial.Result(**entry.pop("result"))
        entry.pop("verdict")
        out.append((single_changes.Mutant(**entry), result))
    return out


def report(results: list[tuple[single_changes.Mutant, trial.Result]]) -> str:
    """The table by file, and what was missed."""
    lines = ["| file | mutants | caught | missed | raised or invalid | other IR, same values | same IR |", "|---|" * 1]
    lines[1] = "|---|---|---|---|---|---|---|"
    total: Counter[str] = Counter()
    files: dict[str, Counter[str]] = {}
    for mutant, result in results:
        files.setdefault(mutant.file, Counter())[result.verdict] += 1
        total[result.verdict] += 1
    for name, counts in [*files.items(), ("all", total)]:
        row: list[Any] = [
            name,
            counts.total(),
            *(counts[v] for v in ("caught", "missed", "failed", "harmless", "same")),
        ]
        lines.append("| " + " | ".join(map(str, row)) + " |")
    changing = total["caught"] + total["missed"]
    share = 100 * total["caught"] / changing if changing else 100.0
    lines += [
        "",
        f"Of {changing} mutants that change a value the checker catches {total['caught']} ({share:.1f} %).",
        "",
    ]
    lines += [f"- {m} ({', '.join(r.oracle[:3])})" for m, r in results if r.verdict == "missed"]
    for verdict, what in (("harmless", "Other IR, the same values"), ("same", "The same IR")):
        lines += ["", f"## {what}", "", *(f"- {m}" for m, r in results if r.verdict == verdict)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
