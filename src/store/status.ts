// The states of submissions and deliveries. flow/states.ts says which transitions of a recipient are legal.

/** `settle_submissions` derives a submission's status from those of its recipients. */
export const submissionStatuses = ['pending', 'delivered', 'partially_delivered', 'failed'] as const
export type SubmissionStatus = (typeof submissionStatuses)[number]
export type DeliveryStatus = 'pending' | 'deferred' | 'delivered' | 'bounced' | 'failed' | 'suppressed'
