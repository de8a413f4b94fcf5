#!/usr/bin/env python3
"""Write the JSON files of data/ as one C file: embed.py OUTPUT KIND=FILE,FILE... KIND=...

Comments and indentation are left out, because every start parses this text; lines stay, because
origins name them.
"""

import pathlib
import re
import sys

STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*')


def without_comments(line):
    kept = STRING_OR_COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else "", line)
    return kept.strip()


def c_string(line):
    return '\t"%s\\n"\n' % line.replace("\\", "\\\\").replace('"', '\\"')


def entry(name):
    path = pathlib.Path(name)
    lines = [without_comments(line) for line in path.read_text(encoding="utf-8").splitlines()]
    size = sum(len(line.encode()) + 1 for line in lines)
    return path.stem, "".join(c_string(line) for line in lines), size


def table(kind, names):
    out = ""
    entries = sorted(entry(name) for name in names)
    for index, (_, body, _) in enumerate(entries):
        out += "static const char %s_%d[] =\n%s\t;\n\n" % (kind, index, body)
    out += "const struct aw_data aw_data_%ss[] = {\n" % kind
    for index, (name, _, size) in enumerate(entries):
        out += '\t{ "%s", %s_%d, %d },\n' % (name, kind, index, size)
    out += "};\nconst size_t aw_data_%s_count = %d;\n\n" % (kind, len(entries))
    return out


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write('#include "policy/data-internal.h"\n\n')
        for argument in sys.argv[2:]:
            kind, names = argument.split("=", 1)
            out.write(table(kind, names.split(",")))


main()
