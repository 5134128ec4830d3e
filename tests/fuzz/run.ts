// `npm run test:fuzz [-- api | smtp | hidden] [OPTION…]`: fuzzes the HTTP API (the default), SMTP or hidden text.
const [campaign = ''] = process.argv.slice(2)
const isNamed = /^(?:api|smtp|hidden)$/.test(campaign)
// Each campaign reads the remaining options.
if (isNamed) process.argv.splice(2, 1)
if (campaign === 'smtp') await import('./smtp/run.ts')
else if (campaign === 'hidden') await import('./hidden/run.ts')
else await import('./api/run.ts')
