# SPDX-License-Identifier: BSD-3-Clause
"""Completion for bash, zsh and fish, from the same parser as --help and the manual pages.

What a value can be follows from the word that stands for it in help: a file, a folder, or one of
some words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .syntax import Argument, Command

_FOLDERS = {"DIR", "A", "B"}  # results directories
_FILES = {"FILE", "CONF", "SITE", "TOPOLOGY"}

_HEAD = """\
# SPDX-License-Identifier: BSD-3-Clause
# Made from the parser of switchbench; see switchbench(1).
"""


def _kind(argument: Argument) -> str:
    """`file`, `folder`, `words` or nothing: what is offered for a value."""
    if argument.choices:
        return "words"
    if argument.value in _FOLDERS:
        return "folder"
    return "file" if argument.value in _FILES else ""


def _flags(command: Command) -> list[str]:
    return [flag for option in command.options for flag in option.flags]


def _valued(command: Command) -> Iterator[Argument]:
    return (option for option in command.options if option.value)


def _last(command: Command) -> str:
    """The word that the command itself is called by."""
    return command.name.rpartition(" ")[2]


# --- bash ----------------------------------------------------------------------------------------

_BASH = """\
_switchbench() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command= at
    for ((at = 1; at < COMP_CWORD; at++)); do
        case "$command ${{COMP_WORDS[at]}}" in
{commands}
            command="${{command:+$command }}${{COMP_WORDS[at]}}" ;;
        esac
    done
    command=${{command# }}
    case "$command $before" in
{values}
    esac
    case "$command" in
{words}
    esac
    if [[ $command && $word != -* ]]; then
        COMPREPLY+=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _switchbench switchbench
"""


def bash(root: Command) -> str:
    """The function that bash calls, as bash-completion loads it."""
    below = [command for command in root.walk() if command.name]
    names = " | ".join(f'"{_bash_path(command)}"' for command in below)
    values = [
        f"    {' | '.join(_bash_value(command, flag) for flag in option.flags)})\n"
        f"        {_bash_offer(option)}\n        return ;;"
        for command in root.walk()
        for option in _valued(command)
    ]
    words = [
        f'    "{command.name}") COMPREPLY=($(compgen -W "{_bash_words(command)}" -- "$word")) ;;'
        for command in root.walk()
    ]
    body = _BASH.format(
        commands=f"        {names})", values="\n".join(values), words="\n".join(words)
    )
    return _HEAD + body


def _bash_path(command: Command) -> str:
    parent, _, last = command.name.rpartition(" ")
    return f"{parent} {last}"


def _bash_value(command: Command, flag: str) -> str:
    return f'"{command.name} {flag}"'


def _bash_offer(option: Argument) -> str:
    offers = {
        "words": f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word"))',
        "folder": 'COMPREPLY=($(compgen -d -- "$word"))',
        "file": 'COMPREPLY=($(compgen -f -- "$word"))',
    }
    return offers.get(_kind(option), "COMPREPLY=()")


def _bash_words(command: Command) -> str:
    return " ".join([*map(_last, command.commands), *_flags(command)])


# --- zsh -----------------------------------------------------------------------------------------


def zsh(root: Command) -> str:
    """A function for a folder of $fpath, with the name _switchbench."""
    functions = [_zsh_function(command) for command in root.walk()]
    return "#compdef switchbench\n" + _HEAD + "\n".join(functions) + '\n_switchbench "$@"\n'


def _zsh_name(command: Command) -> str:
    return "_".join(["_switchbench", *command.name.split()])


def _zsh_function(command: Command) -> str:
    entries = [line for option in command.options for line in _zsh_option(option)]
    entries += [f"'*:{_zsh(one.value)}:{_zsh_offer(one)}'" for one in command.arguments[:1]]
    if not command.commands:
        lines = [f"{_zsh_name(command)}() {{", "    _arguments -s \\"]
        return "\n".join([*lines, *(f"        {entry} \\" for entry in entries), "        ;", "}"])
    return _zsh_parent(command, entries)


def _zsh_parent(command: Command, entries: list[str]) -> str:
    described = "\n".join(
        f"            '{_last(below)}:{_zsh(below.summary)}'" for below in command.commands
    )
    cases = "\n".join(
        f"        {_last(below)}) {_zsh_name(below)} ;;" for below in command.commands
    )
    options = " ".join(entries)
    return f"""\
{_zsh_name(command)}() {{
    local context state line commands
    _arguments -C {options} '1:command:->command' '*::argument:->argument'
    case $state in
    command)
        commands=(
{described}
        )
        _describe command commands ;;
    argument)
        case $line[1] in
{cases}
        esac ;;
    esac
}}"""


def _zsh_option(option: Argument) -> Iterator[str]:
    for flag in option.flags:
        star = "*" if option.repeated else ""
        value = f":{_zsh(option.value)}:{_zsh_offer(option)}" if option.value else ""
        yield f"'{star}{flag}[{_zsh(option.help)}]{value}'"


def _zsh_offer(option: Argument) -> str:
    offers = {"words": f"({' '.join(option.choices)})", "folder": "_files -/", "file": "_files"}
    return offers.get(_kind(option), " ")


def _zsh(text: str) -> str:
    """Text in single quotes, in which brackets and colons have no meaning."""
    text = text.replace("'", "'\\''")
    return "".join(f"\\{letter}" if letter in "[]:" else letter for letter in text)


# --- fish ----------------------------------------------------------------------------------------


def fish(root: Command) -> str:
    """The lines that fish reads when the command is typed."""
    return (
        _HEAD + "\n".join(line for command in root.walk() for line in _fish_lines(command)) + "\n"
    )


def _fish_lines(command: Command) -> Iterator[str]:
    where = _fish_condition(command)
    for below in command.commands:
        yield (
            f"complete -c switchbench -n '{where}' -f -a {_last(below)} -d '{_fish(below.summary)}'"
        )
    for option in command.options:
        flags = " ".join(
            f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
        )
        yield (
            f"complete -c switchbench -n '{where}' {flags}{_fish_offer(option)} "
            f"-d '{_fish(option.help)}'"
        )


def _fish_condition(command: Command) -> str:
    """Words so far name this command, and none below it."""
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.name.split()]
    words = " ".join(map(_last, command.commands))
    unseen = [f"not __fish_seen_subcommand_from {words}"] if words else []
    return "; and ".join(seen + unseen) or "true"


def _fish_offer(option: Argument) -> str:
    if not option.value:
        return ""
    offers = {
        "words": f" -x -a '{' '.join(option.choices)}'",
        "folder": " -x -a '(__fish_complete_directories)'",
        "file": " -r -F",
    }
    return offers.get(_kind(option), " -x")


def _fish(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


SHELLS: dict[str, tuple[str, Callable[[Command], str]]] = {
    "bash": ("bash-completion/completions/switchbench", bash),
    "zsh": ("zsh/site-functions/_switchbench", zsh),
    "fish": ("fish/vendor_completions.d/switchbench.fish", fish),
}
"""By shell: where below `share` it looks for it, and what makes it."""
