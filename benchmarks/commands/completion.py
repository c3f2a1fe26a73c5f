"""What a shell needs to complete commands, options and tables.

The script that typer has is for a program with a name of its own; this suite is called as
`python -m benchmarks`, so here is one for that. What it asks is answered by typer.
"""

from __future__ import annotations

VARIABLE = "_FEDTABLES_COMPLETE"
"""The environment variable by which a shell asks for completions: nothing is run then."""

BASH = """\
_fedtables() {
    [[ "${COMP_WORDS[1]} ${COMP_WORDS[2]}" == "-m benchmarks" && $COMP_CWORD -ge 3 ]] || return 0
    local IFS=$'\\n'
    COMPREPLY=( $(COMP_WORDS="${COMP_WORDS[*]:2}" COMP_CWORD=$((COMP_CWORD - 2)) \\
                  _FEDTABLES_COMPLETE=complete_bash "$1" -m benchmarks 2>/dev/null) )
}
complete -o default -F _fedtables python python3
"""
"""For bash. Other calls of python go on completing the names of files."""
