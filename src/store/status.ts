// The states that rows of submissions and deliveries take; flow/states.ts says what moves between them are legal.

export const submissionStatuses = ['pending', 'delivered', 'partially_delivered', 'failed'] as const
export type SubmissionStatus = (typeof submissionStatuses)[number]
export type DeliveryStatus = 'pending' | 'deferred' | 'delivered' | 'bounced' | 'failed' | 'suppressed'
