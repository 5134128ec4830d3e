// The organization of the service itself, which sends its letters to people. It is the same in every deployment.
import type { OrganizationId } from '../base/ids.ts'

export const ownOrganizationId = '00000000-0000-8000-8000-706f7374686f' as OrganizationId
