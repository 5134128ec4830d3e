// `npm run check`: what can be said of the code in a quarter of a minute; `npm test` runs everything.
import { runChecksAndFences } from './testing/checks.ts'

process.exit((await runChecksAndFences()) ? 0 : 1)
