/** The runtime's HTTP parser (llhttp), which its own `node:http` is built on; it comes without types. */
declare module "node:_http_common" {
  /** What is wrong with an answer; its code begins with "HPE_". */
  type ParseError = Error & { code: string };
  type HeadersComplete = (
    majorVersion: number,
    minorVersion: number,
    /** Names and values alternating; undefined if `kOnHeaders` had them. */
    rawHeaders: string[] | undefined,
    method: number | undefined,
    url: string | undefined,
    statusCode: number,
    statusMessage: string,
    isUpgrade: boolean,
    shouldKeepAlive: boolean,
  ) => number;

  /** Its callbacks are numbered properties. */
  export class HTTPParser {
    static readonly RESPONSE: number;
    static readonly kOnMessageBegin: 0;
    static readonly kOnHeaders: 1;
    static readonly kOnHeadersComplete: 2;
    static readonly kOnBody: 3;
    static readonly kOnMessageComplete: 4;
    static readonly kLenientNone: number;
    0: (() => void) | null;
    1: ((rawHeaders: string[]) => void) | null;
    2: HeadersComplete | null;
    3: ((chunk: Uint8Array) => void) | null;
    4: (() => void) | null;
    initialize(type: number, resource: object, maxHeaderSize: number, lenient: number): void;
    execute(bytes: Uint8Array): number | ParseError;
    /** The other end will send no more. */
    finish(): undefined | ParseError;
    remove(): void;
    free(): void;
  }
}
