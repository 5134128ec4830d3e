// The part of dns-packet (which brings no types) that tests use.
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
    class?: string
    data: unknown
  }
  /** EDNS has fields of its own in the bytes that hold the TTL of other records. */
  export interface Opt {
    type: 'OPT'
    name: '.'
    udpPayloadSize: number
    extendedRcode?: number
    flags: number
    options: []
  }
  export interface Packet {
    id?: number
    type: 'query' | 'response'
    flags: number
    questions: Question[]
    answers: Answer[]
    authorities?: Answer[]
    additionals?: (Answer | Opt)[]
  }
  export const AUTHENTIC_DATA: number
  export const AUTHORITATIVE_ANSWER: number
  export const RECURSION_AVAILABLE: number
  export const TRUNCATED_RESPONSE: number
  export function decode(bytes: Buffer): Packet
  export function encode(packet: Packet): Buffer
}
