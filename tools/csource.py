"""What the check scripts share: which C files there are, and their text without comments."""

import pathlib
import re
import sys

# One token at a time, so that a quote in a comment and a comment in a string mean nothing.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def files(root, *folders):
    """All C sources and headers below the folders, sorted."""
    found = []
    for folder in folders:
        found += (p for p in (root / folder).rglob("*.[ch]") if p.is_file())
    return sorted(found)


def _blank(match, keep_strings):
    text = match.group()
    if keep_strings and not text.startswith("/"):
        return text
    if not text.startswith("/"):
        return text[0] + text[-1]
    return "\n" * text.count("\n") or " "


def code(path, keep_strings=False):
    """The text with comments, and unless kept the insides of strings, taken out; lines stay."""
    text = path.read_text(encoding="utf-8")
    return TOKEN.sub(lambda match: _blank(match, keep_strings), text)


def main(check, argv):
    """Run check(root, report) on the root in argv (this tree); print and count what it reports."""
    here = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(argv[1]) if len(argv) > 1 else here
    problems = []
    check(root, lambda *problem: problems.append(problem))
    for path, line, text in problems:
        print(f"{path.relative_to(root)}:{line}: {text}")
    sys.exit(1 if problems else 0)
