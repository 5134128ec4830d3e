// Shell completion: three short scripts, which ask ph itself for the possible words.
import type { Command } from './command.ts'

export const shells: Record<string, string> = {
  bash: `_ph() { mapfile -t COMPREPLY < <(ph complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); }
complete -o default -F _ph ph`,
  zsh: `#compdef ph
_ph() { local -a found; found=("\${(@f)$(ph complete -- "\${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}"); [[ -n $found[1] ]] && compadd -a found || _files; }
compdef _ph ph`,
  fish: `complete -c ph -f -a '(ph complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
}

/** Returns the words that can follow. The last of `words` is the beginning of the next one, and may be empty. */
export function complete(commands: Command[], words: string[]): string[] {
  const [typed, begun] = [words.slice(0, -1), words.at(-1) ?? '']
  const named = typed.filter((word) => !word.startsWith('-'))
  const next = commands.flatMap(({ words: full }) => {
    const parts = full.split(' ')
    return parts.length > named.length && named.every((word, index) => word === parts[index])
      ? [parts[named.length]!]
      : []
  })
  const options = begun.startsWith('-') ? optionsOf(findCommand(commands, named)) : []
  return [...new Set([...next, ...options])].filter((word) => word.startsWith(begun)).sort()
}

function optionsOf(command: Command | null): string[] {
  return ['json', 'help', ...Object.keys(command?.options ?? {})].map((name) => `--${name}`)
}

/** Returns the command with the most of these words at their beginning. */
export function findCommand(commands: Command[], words: string[]): Command | null {
  const isBegun = ({ words: full }: Command) => full.split(' ').every((part, index) => part === words[index])
  const found = commands.filter(isBegun).sort((a, b) => b.words.length - a.words.length)
  return found[0] ?? null
}
