// The states that rows of submissions and deliveries take; flow/states.ts says what moves between them are legal.

export type SubmissionStatus = 'pending' | 'delivered' | 'partially_delivered' | 'failed'
export type DeliveryStatus = 'pending' | 'deferred' | 'delivered' | 'bounced' | 'failed' | 'suppressed'
