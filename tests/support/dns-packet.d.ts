// The part of dns-packet (which brings no types) that the test server uses.
declare module 'dns-packet' {
  export interface Question {
    type: string
    name: string
    class?: string
  }
  export interface Answer {
    type: string
    name: string
    ttl: number
    data: unknown
  }
  export interface Packet {
    id?: number
    type: 'query' | 'response'
    flags: number
    questions: Question[]
    answers: Answer[]
  }
  export const RECURSION_AVAILABLE: number
  export const TRUNCATED_RESPONSE: number
  export function decode(bytes: Buffer): Packet
  export function encode(packet: Packet): Buffer
}
