// Reads a whole list and downloads it as a CSV file, with pauses if the service asks for them.
import { useMutation } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { download } from '../../parts/download.ts'
import { wordsOf } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { writeCsv } from '../../parts/list/csv.ts'
import { toast } from '../../parts/toasts.ts'
import { suppressions } from '../../texts/suppressions.ts'

type Field = string | null

interface ListPage<Row> {
  rows: readonly Row[]
  nextCursor: string | null
}

interface ExportButtonProps<Row> {
  filename: string
  columns: readonly string[]
  fieldsOf: (row: Row) => Field[]
  /** Reads the page after the cursor. The empty cursor reads the first page. */
  readPage: (cursor: string) => Promise<ListPage<Row>>
}

export function ExportButton<Row>({ filename, columns, fieldsOf, readPage }: ExportButtonProps<Row>) {
  const [count, setCount] = useState(0)
  const run = useMutation({
    mutationFn: async () => {
      const lines: Field[][] = []
      setCount(0)
      let cursor: string | null = ''
      while (cursor !== null) {
        const page: ListPage<Row> = await patiently(readPage, cursor)
        for (const row of page.rows) lines.push(fieldsOf(row))
        setCount(lines.length)
        cursor = page.nextCursor
      }
      download(filename, 'text/csv', writeCsv([[...columns], ...lines]))
      return lines.length
    },
    onSuccess: (written) => toast(suppressions.exported(written)),
    onError: (error) => toast(wordsOf(error).title, 'bad'),
  })
  return (
    <Button icon={Download} busy={run.isPending} onClick={() => run.mutate()}>
      {run.isPending ? suppressions.exportRunning(count) : suppressions.exporting}
    </Button>
  )
}

async function patiently<Page>(readPage: (cursor: string) => Promise<Page>, cursor: string): Promise<Page> {
  for (;;) {
    try {
      return await readPage(cursor)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429) throw error
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterSeconds ?? 5) * 1000))
    }
  }
}
