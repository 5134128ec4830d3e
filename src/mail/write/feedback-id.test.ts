// Tests the Feedback-ID field: stable for each sender, and opaque.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedbackIdOf } from './feedback-id.ts'

const one = {
  domain: 'shop.example',
  organizationId: '019aa000-0000-7000-8000-000000000001',
  campaign: 'spring',
}
const another = { ...one, organizationId: '019aa000-0000-7000-8000-000000000002' }

test('a Feedback-ID has four parts, stays the same for a sender, and names nobody', () => {
  const written = feedbackIdOf(one)
  assert.match(written, /^[0-9a-f]{12}:[0-9a-f]{12}:send:[0-9a-f]{12}$/)
  assert.equal(written, feedbackIdOf({ ...one }))
  assert.doesNotMatch(written, /019aa|shop|spring/)
  const [campaign, organization, , sender] = written.split(':')
  const [otherCampaign, otherOrganization, , otherSender] = feedbackIdOf(another).split(':')
  assert.equal(sender, otherSender, 'both send from one domain')
  assert.notEqual(organization, otherOrganization)
  assert.notEqual(campaign, otherCampaign, 'campaigns of one name are not linked')
  assert.equal(feedbackIdOf({ ...one, campaign: null }).split(':')[0], 'none')
})
