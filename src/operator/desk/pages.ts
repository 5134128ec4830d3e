// Serves the built pages of the desk.
import { errorAnswer, sendError } from '../../http/errors.ts'
import { BuiltPages } from '../../web/built-pages.ts'
import type { Desk, DeskDeps } from './deps.ts'

const directives = ["img-src 'self' data:", "form-action 'none'"]
const notBuilt =
  'The pages of the desk are not built: run `npm run build` where Posthorn is installed. The command line does all that they do.\n'

/** Views have no path: the part after the # belongs to the page. */
export function serveDeskPages(desk: Desk, { settings: { pagesFolder } }: Pick<DeskDeps, 'settings'>): void {
  const pages = new BuiltPages(pagesFolder)
  desk.get('/assets/:name', { schema: { hide: true } }, async (request, reply) => {
    const { name } = request.params as { name: string }
    return (await pages.sendFile(request, reply, name)) ?? sendError(reply, errorAnswer('route_not_found'))
  })
  desk.get('/', { schema: { hide: true } }, (_request, reply) =>
    pages.sendPage(reply, 'desk.html', { directives, notBuilt }),
  )
}
