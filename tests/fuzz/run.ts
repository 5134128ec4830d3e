// `npm run test:fuzz [-- api | smtp | hidden] [OPTION…]`: the HTTP API, also if none is named, the mail server, or hidden text.
const [campaign = ''] = process.argv.slice(2)
const isNamed = /^(?:api|smtp|hidden)$/.test(campaign)
// Each campaign reads the options that are left.
if (isNamed) process.argv.splice(2, 1)
if (campaign === 'smtp') await import('./smtp/run.ts')
else if (campaign === 'hidden') await import('./hidden/run.ts')
else await import('./api/run.ts')
