// `npm run check`: the checks that take a quarter of a minute; `npm test` runs everything.
import { runChecksAndFences } from './testing/checks.ts'

process.exit((await runChecksAndFences()) ? 0 : 1)
