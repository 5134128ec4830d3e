// `npm run test:fuzz [-- api | smtp] [OPTION…]`: the HTTP API, which is what is meant where nothing is said, or the mail server.
const [campaign = ''] = process.argv.slice(2)
const isNamed = /^(?:api|smtp)$/.test(campaign)
// Each campaign reads the options that are left.
if (isNamed) process.argv.splice(2, 1)
if (campaign === 'smtp') await import('./smtp/run.ts')
else await import('./api/run.ts')
