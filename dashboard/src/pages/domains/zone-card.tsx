// All records together as a zone file.
import { useQuery } from '@tanstack/react-query'
import { ChevronRight, Download } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { Card } from '../../parts/card.tsx'
import { CodeBlock } from '../../parts/code-block.tsx'
import { download } from '../../parts/download.ts'
import { Button } from '../../parts/form/button.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { domains } from '../../texts/domains.ts'
import type { Domain } from './domain-queries.ts'

export function ZoneCard({ domain: { id, domain, updatedAt } }: { domain: Domain }) {
  const query = useQuery({
    queryKey: ['domain', id, 'zone', updatedAt],
    queryFn: () =>
      read<string>(
        api.GET('/v1/domains/{domainId}/zone', { params: { path: { domainId: id } }, parseAs: 'text' }),
      ),
  })
  return (
    <Card
      title={domains.zone}
      lead={domains.zoneWhat}
      actions={
        <Button
          size="small"
          icon={Download}
          disabled={query.data === undefined}
          onClick={() => download(`${domain}.zone`, 'text/dns', query.data ?? '')}
        >
          {domains.zoneDownload}
        </Button>
      }
    >
      <details className="group">
        <summary className="flex w-fit list-none items-center gap-1.5 rounded-sm text-sm text-muted hover:text-ink [&::-webkit-details-marker]:hidden">
          <ChevronRight size={15} aria-hidden className="transition-transform group-open:rotate-90" />
          {domains.zoneShow}
        </summary>
        <div className="mt-3">
          <Loaded query={query}>{(zone) => <CodeBlock code={zone} label={domains.zone} />}</Loaded>
        </div>
      </details>
    </Card>
  )
}
