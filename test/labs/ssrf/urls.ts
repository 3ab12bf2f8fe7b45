/**
 * The ways to write a URL that names the inside, or that two parsers read in two ways, row by row (hazards, section
 * 1.2), with the vectors that belong to each and the words by which they are refused. PORT is a listener's.
 */
export interface UrlRow {
  readonly trick: string;
  readonly says: RegExp;
  readonly vectors: readonly string[];
}

const notPublic = /must have a public address/;
const invalid = /must be a valid URL/;

export const urlRows: readonly UrlRow[] = [
  {
    trick: "IPv4 as one number, in octal, in hexadecimal, with parts left out",
    says: notPublic,
    vectors: [
      ...["2130706433", "0x7f000001", "0x7f.1", "0x7F.0x0.0x0.0x1", "0177.0.0.1", "0177.1", "127.1", "127.0.1"],
      ...["017700000001", "00000177.1", "0", "0x0", "0300.0250.0.1", "3232235521", "0xa9fea9fe", "2852039166", "10.1"],
      ...["0xa.0.0.1", "012.0.0.1", "169.254.43518", "4294967295"],
    ].map(asHost),
  },
  {
    trick: "digits and dots of other scripts, percent-encoded ones, a dot at the end",
    says: notPublic,
    vectors: [
      "①②⑦.⓪.⓪.①",
      "127。0。0。1",
      "127．0．0．1",
      "127｡0｡0｡1",
      "１２７.０.０.１",
      "%31%32%37.0.0.1",
      "127.0.0.1.",
    ].map(asHost),
  },
  { trick: "the scheme in capitals", says: notPublic, vectors: ["HTTPS://127.0.0.1:PORT/", "hTTps://[::1]:PORT/"] },
  {
    trick: "IPv6 with IPv4 inside, in both notations",
    says: notPublic,
    vectors: [
      ...[
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[0000::0001]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::FFFF:7F00:1]",
      ],
      ...["[0:0:0:0:0:ffff:7f00:0001]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]"],
      ...[
        "[::127.0.0.1]",
        "[::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
        "[fd00:ec2::254]",
      ],
    ].map(asHost),
  },
  {
    trick: "a user name or password, which other parsers take for the host",
    says: /user name or password/,
    vectors: [
      ...[
        "u:p@127.0.0.1",
        "u@127.0.0.1",
        "example.com@127.0.0.1",
        "127.0.0.1@example.com",
        "@127.0.0.1",
        ":@127.0.0.1",
      ],
      ...["example.com:443@127.0.0.1", "a@b@127.0.0.1", "example.com%40@127.0.0.1"],
    ].map(asHost),
  },
  {
    trick: "a backslash, which some parsers take for a slash",
    says: /backslash/,
    vectors: [
      "https://127.0.0.1:PORT\\@example.com/",
      "https://example.com\\@127.0.0.1:PORT/",
      "https:\\\\127.0.0.1:PORT/",
      "https:/\\127.0.0.1:PORT/",
      "https://127.0.0.1:PORT\\.example.com/",
    ],
  },
  {
    trick: "control characters and spaces, which the parser drops",
    says: /spaces or control characters/,
    vectors: [
      "https://127.0.\t0.1:PORT/",
      "https://127.0.0.1\n:PORT/",
      "https://lo\rcalhost:PORT/",
      "h\nttps://127.0.0.1:PORT/",
      " https://127.0.0.1:PORT/",
      "https://127.0.0.1:PORT/ ",
      "\u0000https://127.0.0.1:PORT/",
      "https://example.com/\r\nHost: 127.0.0.1",
      "https://127.0.0.1:PORT/\u007f",
    ],
  },
  {
    trick: "slashes too few or too many",
    says: /must start with "https:\/\/"/,
    vectors: [
      "https:127.0.0.1:PORT/",
      "https:/127.0.0.1:PORT/",
      "https:///127.0.0.1:PORT/",
      "https:////127.0.0.1:PORT/",
      "//127.0.0.1:PORT/",
      "127.0.0.1:PORT/",
    ],
  },
  {
    trick: "another scheme",
    says: /must start with "https:\/\/"/,
    vectors: [
      "http://127.0.0.1:PORT/",
      "http://localhost:PORT/",
      "http://receiver.example:PORT/",
      "HTTP://127.0.0.1:PORT/",
      "ftp://127.0.0.1:PORT/",
      "gopher://127.0.0.1:PORT/_x",
      "ws://127.0.0.1:PORT/",
      "unix:///var/run/docker.sock",
      "file:///etc/hostname",
      "file://127.0.0.1:PORT/etc/hostname",
      "javascript:fetch('http://127.0.0.1:PORT/')",
      "data:text/plain,x",
      "blob:https://127.0.0.1:PORT/0",
    ],
  },
  {
    trick: "a fragment",
    says: /fragment/,
    vectors: ["https://127.0.0.1:PORT/#x", "https://example.com#@127.0.0.1:PORT/"],
  },
  {
    trick: "localhost, with a dot, below it, in other letters",
    says: /must have a (full )?public host name/,
    vectors: [
      ...["localhost", "localhost.", "LOCALHOST", "ⓛocalhost", "lo\u00adcalhost", "foo.localhost", "foo.localhost."],
    ].map(asHost),
  },
  {
    trick: "names that mean something on a private network only",
    says: /must have a (full )?(public )?host name/,
    vectors: [
      ...[
        "metadata",
        "metadata.google.internal",
        "printer.local",
        "x.internal",
        "nas.home.arpa",
        "nas.lan",
        "x.intranet",
      ],
      ...["x.corp", "x.home", "x.onion", "x.invalid", "x.test", "kubernetes.default.svc.cluster.local"],
    ].map(asHost),
  },
  {
    trick: "names that are none",
    says: /must have a host name of letters/,
    vectors: [
      ...[".", "....", "example..com", ".example.com", "ex_ample.com", "-example.com", "example-.com", "ex*mple.com"],
      ...[`${"a".repeat(64)}.example`, `${`${"a".repeat(61)}.`.repeat(4)}abcdef`, "127.0.0.1,example.com"],
    ].map(asHost),
  },
  {
    trick: "what the parser refuses",
    says: invalid,
    vectors: [
      ...[
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "127.0.0.1%00.example.com",
        "256.256.256.256",
        "1.2.3.4.5",
        "0xffffffffff",
      ],
      ...["xn--localhost", "[::1", "[v1.a]", "[::ffff:127.0.0.1.]", "[:::1]", "127.0.0.0x100"],
    ]
      .map(asHost)
      .concat("https://127.0.0.1:65536/", "https://", "https://?x"),
  },
  {
    trick: "ports of other protocols",
    says: /must not use a port reserved for another protocol/,
    vectors: [0, 22, 25, 53, 110, 143, 389, 6000, 6667].map((port) => `https://1.1.1.1:${port}/`),
  },
];

/** Names like any other: what they resolve to is judged when it is dialled. */
export const resolvingInside = [
  "127.0.0.1.nip.io",
  "192.168.0.1.nip.io",
  "169-254-169-254.sslip.io",
  "7f000001.c0a80001.rbndr.us",
];

/** A word for the host, in front of a listener's port. */
function asHost(host: string): string {
  return `https://${host}:PORT/`;
}
