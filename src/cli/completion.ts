// `posthorn completion SHELL`: prints shell completions, generated from the commands themselves.
import { Argument, type Command, type Option } from 'commander'
import { type OutputOptions, print } from './context.ts'

const completionHelp = `
  bash    source <(posthorn completion bash)           in ~/.bashrc
  zsh     source <(posthorn completion zsh)            in ~/.zshrc, after compinit
  fish    posthorn completion fish | source            in ~/.config/fish/config.fish

If posthorn is not on the PATH, write bin/posthorn instead. The completion works for both.`

const shells = { bash: writeBash, zsh: writeZsh, fish: writeFish }
type Shell = keyof typeof shells

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'your shell').choices(Object.keys(shells)))
    .description('print the completion script for your shell')
    .addHelpText('after', completionHelp)
    .option('--json', 'print JSON')
    .action((shell: Shell, options: OutputOptions) => {
      const script = shells[shell](listWords(program))
      print(options, { shell, script }, script.trimEnd())
    })
}

interface Word {
  text: string
  description: string
  /** Whether the option takes a value. */
  takesValue: boolean
  /** The possible values, if they are few. */
  values: string[]
  /** Whether the value is a list with commas. */
  isList: boolean
}

/** The words that may follow a command. */
interface CommandWords {
  /** Its words after `posthorn`, such as `org create`; '' is the program itself. */
  command: string
  below: Word[]
  options: Word[]
}

function listWords(command: Command, words = ''): CommandWords[] {
  const help = command.createHelp()
  const below = help.visibleCommands(command)
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices)
  const options = help.visibleOptions(command).map(wordOf)
  const own: CommandWords = {
    command: words,
    below: [
      ...below.map((one) => ({ text: one.name(), description: help.subcommandDescription(one) })),
      ...choices.map((text) => ({ text, description: '' })),
    ].map((word) => ({ ...word, takesValue: false, values: [], isList: false })),
    options,
  }
  const deeper = command.commands.flatMap((one) => listWords(one, `${words} ${one.name()}`.trim()))
  // A chosen value is not offered again.
  const chosen = choices.map((text) => ({ command: `${words} ${text}`, below: [], options }))
  return [own, ...chosen, ...deeper]
}

function wordOf({ long, short, description, required, optional, flags, argChoices = [] }: Option): Word {
  // A shell would expand `*` to file names.
  const values = argChoices.filter((choice) => choice !== '*')
  const takesValue = required || optional
  return { text: long ?? short!, description, takesValue, values, isList: /<\w+,/.test(flags) }
}

/** All commands except the program, in the form of `$before $word`: ` org`, `org create`. */
function steps(all: CommandWords[]): string[] {
  return all.flatMap(({ command }) =>
    command === '' ? [] : [command.includes(' ') ? command : ` ${command}`],
  )
}

/** The options with values, each once: those with known values, and the names of the others. */
function valued(all: CommandWords[]): { known: Word[]; others: string[] } {
  const words = all.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue))
  const once = [...new Map(words.map((word) => [word.text, word])).values()]
  const [known, others] = [true, false].map((isKnown) =>
    once.filter(({ values }) => values.length > 0 === isKnown),
  )
  return { known: known!, others: others!.map(({ text }) => text).sort() }
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

function writeBash(all: CommandWords[]): string {
  const cases = all.map(({ command, below, options }) => {
    const words = [...below, ...options].map(({ text }) => text).join(' ')
    return `    ${quoted(command)}) words=${quoted(words)} ;;`
  })
  const { known, others } = valued(all)
  const values = known.map(({ text, values, isList }) => {
    const list = isList ? `; list=\${current%"\${current##*,}"}; compopt -o nospace 2>/dev/null` : ''
    return `    ${text}) words=${quoted(values.join(' '))}${list} ;;`
  })
  return `# Completion of posthorn in bash: source <(posthorn completion bash)
_posthorn() {
  # Bash takes a word apart at its colons; the line has it whole.
  local line=\${COMP_LINE:0:COMP_POINT} word words='' list='' before='' at
  local current=\${line##*[[:space:]]}
  local rest=\${line%"$current"}
  rest=\${rest%"\${rest##*[![:space:]]}"}
  for ((at = 1; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    case "$before $word" in
      ${steps(all).map(quoted).join('|')}) before=\${before:+$before }$word ;;
    esac
  done
  case $before in
${cases.join('\n')}
  esac
  case "\${rest##*[[:space:]]}" in
${values.join('\n')}
    ${others.join('|')}) return ;;
  esac
  COMPREPLY=($(compgen -P "$list" -W "$words" -- "\${current#"$list"}"))
  if [[ $COMP_WORDBREAKS == *:* ]]; then COMPREPLY=("\${COMPREPLY[@]#"\${current%"\${current##*:}"}"}"); fi
}
complete -o default -F _posthorn posthorn
`
}

function writeZsh(all: CommandWords[]): string {
  const entry = ({ text, description }: Word) =>
    quoted(description ? `${text}:${description.replaceAll(':', '\\:')}` : text)
  const cases = all.map(
    ({ command, below, options }) =>
      `    (${quoted(command)}) entries=(${[...below, ...options].map(entry).join(' ')}) ;;`,
  )
  const { known, others } = valued(all)
  const values = known.map(({ text, values, isList }) => {
    const complete = isList ? '_sequence compadd -' : 'compadd -'
    return `    (${text}) ${complete} ${values.join(' ')}; return ;;`
  })
  return `#compdef posthorn
# Completion of posthorn in zsh: source <(posthorn completion zsh)
_posthorn() {
  local word before='' at
  local -a entries
  case "$words[CURRENT - 1]" in
${values.join('\n')}
    (${others.join('|')}) _files; return ;;
  esac
  for ((at = 2; at < CURRENT; at++)); do
    word=$words[at]
    case "$before $word" in
      (${steps(all).map(quoted).join('|')}) before=\${before:+$before }$word ;;
    esac
  done
  case $before in
${cases.join('\n')}
  esac
  _describe 'posthorn' entries || _files
}
if [ "$funcstack[1]" = _posthorn ]; then _posthorn "$@"; else compdef _posthorn posthorn; fi
`
}

function writeFish(all: CommandWords[]): string {
  const inFish = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const valueFlagsOf = ({ takesValue, values, isList }: Word) => {
    if (values.length === 0) return takesValue ? ' -r' : ''
    const words = values.join(' ')
    return ` -x -a ${inFish(isList ? `(__fish_append , ${words})` : words)}`
  }
  const lines = all.flatMap(({ command, below, options }) => {
    const start = `complete -c posthorn -n ${inFish(`__posthorn_at "${command}"`)}`
    const named = ({ description }: Word) => (description ? ` -d ${inFish(description)}` : '')
    return [
      ...below.map((word) => `${start} -f -a ${inFish(word.text)}${named(word)}`),
      ...options.map(
        (word) => `${start} -l ${word.text.replace(/^--/, '')}${valueFlagsOf(word)}${named(word)}`,
      ),
    ]
  })
  return `# Completion of posthorn in fish: posthorn completion fish | source
function __posthorn_at
    set -l before ''
    for word in (commandline -opc)[2..-1]
        switch "$before $word"
            case ${steps(all).map(inFish).join(' ')}
                set before (string trim "$before $word")
        end
    end
    test "$before" = "$argv[1]"
end
${lines.join('\n')}
`
}
