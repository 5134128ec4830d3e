// The part of the form that new messages and replies share: the text, its files, and the send button.
import { useQuery } from '@tanstack/react-query'
import { Code, SendHorizontal } from 'lucide-react'
import {
  type ClipboardEvent,
  type DragEvent,
  type FormEvent,
  type KeyboardEvent,
  type ReactNode,
  useState,
} from 'react'
import { writtenBytes } from '../../../parts/bytes.ts'
import { classes } from '../../../parts/classes.ts'
import { ErrorNote } from '../../../parts/error-note.tsx'
import { Button } from '../../../parts/form/button.tsx'
import { TextArea } from '../../../parts/form/field.tsx'
import { Kbd } from '../../../parts/kbd.tsx'
import { writing } from '../../../texts/writing.ts'
import { limitsQuery } from '../mail-queries.ts'
import type { DraftState } from './draft.ts'
import { FilesField } from './files-field.tsx'
import type { Faults } from './send.ts'

interface LetterProps {
  label: string
  state: DraftState
  faults: Faults
  isSending: boolean
  /** The fields above the text: recipients and subject. */
  children: ReactNode
  onSend: () => void
  onDiscard: () => void
  /** Focuses the text when the form opens. */
  focus?: 'text'
}

export function Letter({ label, state, faults, isSending, children, onSend, onDiscard, focus }: LetterProps) {
  const { draft, change, files, setFiles, lostNames } = state
  const drop = useDrop((dropped) => setFiles([...files, ...dropped]))
  const limit = useLimit(state)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!isSending) onSend()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) submit(event)
  }
  const tooLarge =
    limit && limit.usedBytes > limit.mostBytes ? writing.tooLarge(writtenBytes(limit.mostBytes)) : null
  return (
    <form
      aria-label={label}
      onSubmit={submit}
      onKeyDown={press}
      {...drop.listeners}
      className={classes('relative grid min-w-0 gap-4', drop.isOver && 'rounded-md outline-2 outline-accent')}
    >
      {children}
      <TextArea
        label={writing.message}
        labelHidden
        placeholder={writing.message}
        rows={9}
        autoFocus={focus === 'text'}
        value={draft.text}
        error={faults.text}
        onChange={(event) => change({ text: event.target.value })}
      />
      <HtmlField state={state} error={faults.html} />
      <FilesField
        files={files}
        onChange={setFiles}
        limit={limit}
        lostNames={lostNames}
        error={tooLarge ?? faults.files}
      />
      <ErrorNote error={faults.other} />
      <div className="flex flex-wrap items-center gap-2">
        <Button
          variant="primary"
          type="submit"
          icon={SendHorizontal}
          busy={isSending}
          disabled={tooLarge !== null}
        >
          {isSending ? writing.sending : writing.send}
        </Button>
        <span className="hidden text-faint sm:block">
          <Kbd keys="Mod Enter" />
        </span>
        <span className="ml-auto hidden text-sm text-faint sm:block">{writing.draftKept}</span>
        <Button variant="quiet" onClick={onDiscard} className="max-sm:ml-auto">
          {writing.discard}
        </Button>
      </div>
    </form>
  )
}

function HtmlField({ state: { draft, change }, error }: { state: DraftState; error: string | undefined }) {
  const isOn = draft.html !== null
  return (
    <div className="grid gap-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Button
          size="small"
          icon={Code}
          aria-pressed={isOn}
          onClick={() => change({ html: isOn ? null : '' })}
        >
          {writing.writeHtml}
        </Button>
        {isOn && <span className="text-sm text-faint">{writing.writeHtmlHint}</span>}
      </div>
      {isOn && (
        <TextArea
          label={writing.htmlField}
          labelHidden
          placeholder="<p>…</p>"
          rows={6}
          spellCheck={false}
          error={error}
          value={draft.html ?? ''}
          onChange={(event) => change({ html: event.target.value })}
          className="font-mono text-sm!"
        />
      )}
    </div>
  )
}

/** Returns the used part of the limit on text, HTML and files. Null until the limit is known. */
function useLimit({ draft, files }: DraftState): { usedBytes: number; mostBytes: number } | null {
  const { data: profile } = useQuery(limitsQuery)
  if (!profile) return null
  const texts = new Blob([draft.text, draft.html ?? '']).size
  return {
    usedBytes: files.reduce((sum, { size }) => sum + size, texts),
    mostBytes: profile.platformLimits.messageContentBytes,
  }
}

function useDrop(take: (files: File[]) => void) {
  const [isOver, setIsOver] = useState(false)
  const drag = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes('Files')) return
    event.preventDefault()
    setIsOver(true)
  }
  const listeners = {
    onDragOver: drag,
    onDragLeave: () => setIsOver(false),
    onDrop: (event: DragEvent) => {
      setIsOver(false)
      if (event.dataTransfer.files.length === 0) return
      event.preventDefault()
      take([...event.dataTransfer.files])
    },
    onPaste: (event: ClipboardEvent) => {
      if (event.clipboardData.files.length === 0) return
      event.preventDefault()
      take([...event.clipboardData.files])
    },
  }
  return { isOver, listeners }
}
