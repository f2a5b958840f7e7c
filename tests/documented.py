"""What the documentation shows to be typed: the command lines of its code blocks, and what runs each of them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/benchmarks.md"
"""Its code blocks are results, in which `ackscope` is the name of a row."""

CATALOGUE = sorted(ROOT.glob("diagnosis/catalogue/*.md"))
"""tests/integration/diagnosis/test_commands.py runs the steps of these pages."""

DOCS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")} - {RESULTS})

FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^ *```([\w-]*).*?\n(.*?)^ *```|((?:^    \S.*\n)+)", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "bash"}
"""Labels of blocks that have commands only. Other text may be between those of a block without a label."""

PROGRAMS = (
    "ackscope|buildah|cp|curl|docker|export|git|helm|kubectl|ln|make|oauth2-proxy|pip|pipx|promtool|python3?|rabbitmqctl|"
    "sed|sh|systemctl|uvx"
)
START = re.compile(rf"\s*(?:\$ |sudo )?(?:\S*/)?(?:{PROGRAMS}) (?!:)")
PROMPT = re.compile(r"^\s*(?:\$ |sudo )?")
ASSIGNMENT = re.compile(r"[A-Z_]+=")
SEPARATORS, REDIRECTIONS = {"&&", "||", ";", "|"}, {">", ">>", "<"}

HERE = "tests/integration/exporter/test_documented.py"
"""Its options need no check: it types the commands as they are written."""

RUN_BY = {
    **dict.fromkeys(
        (
            "ackscope init",
            "ackscope diagnose",
            "ackscope bundle",
            "ackscope exporter",
            "ackscope notify",
            "ackscope files",
            "ackscope mcp",
            "ackscope dashboard",
            "ackscope pipeline compact",
            "ackscope pipeline expire",
            "cd",
            "cp",
            "curl",
            "ln",
            "promtool",
            "python3 -m venv",
            "rabbitmqctl add_user",
            "rabbitmqctl set_user_tags",
            "rabbitmqctl set_permissions",
            "sed",
        ),
        HERE,
    ),
    "ackscope lab": "tests/integration/lab/test_command.py",
    "ackscope pipeline ask changed": "tests/spark/test_answers_asked.py",
    "ackscope pipeline ask slo": "tests/spark/test_answers.py",
    "ackscope pipeline backtest": "tests/spark/test_backtest.py",
    "ackscope pipeline stream": "tests/spark/test_process.py",
    "ackscope pipeline stream --landing s3://": "tests/spark/test_object_stream.py",
    "ackscope probe confirm": "tests/integration/probes/test_command.py",
    "ackscope probe confirm --strategy": "tests/integration/probes/test_strategies.py",
    "ackscope probe prefetch": "tests/integration/probes/test_command.py",
    "ackscope probe redelivery": "tests/integration/probes/test_command.py",
    "ackscope verify": "tests/integration/lab/test_verify.py",
    "buildah build": "tests/ship/test_image.py",
    "export ARCHIVE": "tests/spark/test_standalone.py",
    "make demo": "tests/e2e/test_demo.py",
    "grep": "tests/integration/diagnosis/test_commands.py",
    "make dist": "tests/ship/conftest.py",
    "make dist images": "tests/ship/test_image.py",
    "python -m bench.diagnosis.coverage": "tests/unit/bench/test_coverage.py",
    "python -m exporter.docs.configuration": "tests/unit/exporter/test_docs.py",
    "python -m exporter.docs.runbooks": "tests/unit/exporter/api/test_runbooks.py",
    "rabbitmqctl list_consumers": "tests/integration/diagnosis/test_commands.py",
    "sh spark/pack.sh": "tests/spark/test_standalone.py",
    "sh spark/standalone.sh": "tests/spark/test_standalone.py",
}
"""The beginning of a command, and the test that runs it. The longest beginning that fits counts."""

GUIDE = ROOT / "CONTRIBUTING.md"
ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)


def not_run_here() -> dict[str, str]:
    """The beginnings of the commands that no test runs, and why: the table of CONTRIBUTING.md."""
    section = GUIDE.read_text().partition("\n## Commands that no test runs\n")[2].partition("\n## ")[0]
    return dict(ROW.findall(section))


def beginning(words: tuple[str, ...], known: dict[str, str]) -> str | None:
    """The longest of the known beginnings that a command has."""
    return max((each for each in known if " ".join(words).startswith(each)), key=len, default=None)


def lines(page: Path) -> Iterator[str]:
    """The command lines of a page, each as a shell takes it."""
    for language, fenced, indented in BLOCK.findall(FRONT_MATTER.sub("", page.read_text())):
        if language not in {*SHELL, "console", ""}:
            continue
        pending = ""
        for line in (fenced or indented).replace("\\\n", " ").splitlines():
            if not pending and language not in SHELL and not START.match(line):
                continue
            pending += f"\n{line}" if pending else PROMPT.sub("", line)
            if is_complete(pending):
                if pending.strip():
                    yield pending.strip()
                pending = ""


def is_complete(text: str) -> bool:
    """Whether all quotes are closed."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def commands(line: str) -> Iterator[tuple[str, ...]]:
    """The words of each command of a line, without its variables and redirections, and without folders of programs."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    is_target = False
    for word in [*lexer, ";"]:
        if word in SEPARATORS:
            if words:
                yield (words[0].rpartition("/")[2], *words[1:])
            words = []
        elif not is_target and word not in REDIRECTIONS and (words or not ASSIGNMENT.match(word)):
            words.append(word)
        is_target = word in REDIRECTIONS


def ackscope_commands(page: Path) -> Iterator[tuple[str, ...]]:
    """The words of each `ackscope` command of a page, without `ackscope`."""
    for line in lines(page):
        for program, *words in commands(line):
            if program == "ackscope":
                yield tuple(words)
