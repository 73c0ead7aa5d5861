#pragma once
/*
 * The protocol between the hub and the egress proxy (net/egress), over a SOCK_SEQPACKET pair
 * between processes of one build, so plain structs in host order. The proxy finds its end at
 * NW_FD. It ends with it.
 *
 * The hub says NW_HELLO first. Then for each sandbox, named by a key that the hub chooses, NW_GRANT
 * with its rules and NW_SOCKETS with the listening sockets that were made in its network namespace.
 * A new proxy gets all of that again: it keeps nothing. Each of these is answered, in order, by
 * NW_DONE or NW_FAILED with its seq. Events (NW_FLOW) and questions (NW_WANT) come between.
 *
 * The hub is trusted by the proxy; the proxy has strangers on both sides, so the hub checks what it
 * says: keys are looked up, texts are terminated, addresses lie in the range for wildcards.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/wire/http.h"
#include "net/wire/rule.h"

enum {
	NW_VERSION = 1,
	NW_FD = 3, /* the hub's socket in a new proxy */
	NW_MAX = 160 * 1024, /* one message; below the default socket buffer */
	NW_ID_MAX = 65,
	NW_SOCKETS_MAX = 64, /* in one message: as many descriptors as one can carry */
	NW_RULES_MAX = 256, /* of a sandbox */
	NW_HTTP_MAX = 128, /* of a sandbox */
	NW_RESOLVERS_MAX = 4,
	NW_PORTS_MAX = 32, /* that the rules grant to one name by a wildcard */
	NW_SECRETS_MAX = 16, /* of a sandbox */
	NW_SECRET_HOSTS_MAX = 16, /* of a secret */
	NW_SECRET_NAME_MAX = 65,
	NW_SECRET_MIN = 8, /* bytes of a value: a shorter one would be found everywhere */
	NW_SECRET_MAX = 4096,
	NW_SECRET_TRUST_MAX = 16 * 1024,
	NW_PLACEHOLDER_MAX = 48,
	NW_METHOD_MAX = 33,
	NW_TARGET_MAX = 2048, /* longer ones can't be shown to a person */
	NW_WHY_MAX = 256,
	NW_EXCHANGES_MAX = 16, /* of a sandbox */
	NW_EXCHANGE_PATH_MAX = 128, /* with the NUL */
	NW_TOKENS_MAX = 64 * 1024, /* bytes of an answer with tokens */
	NW_SPLIT_MAX = 16, /* suffixes with name servers of their own */
	NW_NAMES_MAX = 64, /* that are private, and that the network's proxy is not asked for */
	NW_AUTH_MAX = 1024, /* bytes of "user:password" */
	NW_CA_MAX = 64 * 1024,
};

/* Each placeholder begins with this. */
#define NW_PLACEHOLDER "holt-secret-"

/* 127/8 of a sandbox: where exact names are (the hub chooses), and names of wildcards (the proxy
 * chooses). The first and last address of each is not used. */
enum { NW_EXACT_NET = 0x7f010000, NW_WILD_NET = 0x7f020000, NW_NET_SIZE = 0x10000 };

enum nw_type {
	NW_HELLO = 1, /* hub: nw_hello, and what follows it */
	NW_GRANT, /* hub: nw_grant, n net_rule, n_http net_http_rule */
	NW_SOCKETS, /* hub: nw_sockets, n nw_socket; one descriptor for each */
	NW_DROP, /* hub: nw_drop */
	NW_DONE, /* proxy: nw_head */
	NW_FAILED, /* proxy: nw_failed; nothing was changed, descriptors are closed */
	NW_WANT, /* proxy: nw_want */
	NW_FLOW, /* proxy: nw_flow */
	NW_SECRETS, /* hub: nw_secrets, n nw_secret, n nw_exchange, hosts as net_rule, and bytes */
	NW_ASK, /* proxy: nw_ask */
	NW_LEAVE, /* proxy: nw_leave */
	NW_VERDICT, /* hub: nw_verdict */
	NW_TOKENS, /* proxy: nw_tokens, and bytes */
	NW_KEPT, /* hub: nw_kept, and bytes */
};

struct nw_head {
	uint32_t type;
	uint32_t seq; /* of the request; the answer repeats it */
};

/* The limits of each sandbox. 0: the default; for bytes_per_s: no limit. */
struct nw_limits {
	uint32_t flows; /* at once; 256 */
	uint32_t flows_per_s; /* new ones; 100, and as many at once after a pause */
	uint32_t names; /* that wildcards have addresses for; 64 */
	uint32_t queries_per_s; /* of names; 500 */
	uint32_t head_bytes; /* of one HTTP head; 64 KiB */
	uint32_t handshake_ms; /* until the first bytes and the dial are done; 10,000 */
	uint64_t idle_ms; /* without a byte; an hour */
	uint64_t bytes_per_s; /* both ways together */
};

struct nw_resolver {
	struct net_addr addr;
	uint16_t port; /* 0: 53 */
};

/* The name servers of a name and of all below it. */
struct nw_split {
	char host[NET_HOST_MAX];
	uint32_t n;
	struct nw_resolver servers[NW_RESOLVERS_MAX];
};

/* The network's own proxy may be the only way out: then names are reached by its CONNECT, and it
 * resolves them. Behind the struct follow n_split nw_split, n_private net_rule (names that may have
 * private addresses), n_direct net_rule (names that the proxy is not asked for), both without a
 * port, n_auth bytes for the proxy and n_ca bytes of certificates (PEM) that are trusted beside the
 * host's. Both sides wipe the message. */
struct nw_hello {
	struct nw_head h;
	uint32_t version;
	uint32_t n_split, n_private, n_direct, n_auth, n_ca;
	char proxy[NET_HOST_MAX]; /* a name or an address; "": none */
	uint16_t proxy_port;
	/* 0: those of the host's resolv.conf. Its hosts file counts either way. */
	uint32_t n_resolvers;
	struct nw_resolver resolvers[NW_RESOLVERS_MAX];
	struct nw_limits limits;
};

/* Replaces the sandbox's rules. Flows that are still allowed go on, the others are reset; sockets
 * of names and ports that are no longer granted are closed. */
struct nw_grant {
	struct nw_head h;
	uint64_t key;
	char id[NW_ID_MAX]; /* of the sandbox; for messages */
	uint32_t n_rules, n_http;
};

enum nw_socket_kind {
	NW_SOCKET_FLOW = 1, /* listens at an address that stands for a name */
	NW_SOCKET_DNS_UDP, /* bound to 127.0.0.1:53 */
	NW_SOCKET_DNS_TCP, /* listens there */
	NW_SOCKET_PROXY, /* listens at 127.0.0.1:3128 */
};

struct nw_socket {
	uint32_t kind; /* enum nw_socket_kind */
	uint32_t ip; /* IPv4, host order, in 127/8 */
	uint32_t port;
	char name[NET_HOST_MAX]; /* of FLOW, as net_host_parse() makes it */
};

/* More sockets of a sandbox that has had its NW_GRANT. One of the same kind, address and port
 * replaces an earlier one. A FLOW socket's name is resolved to its address by the stub resolver
 * from then on, so it needs one for each port that any rule grants to the name. */
struct nw_sockets {
	struct nw_head h;
	uint64_t key;
	uint32_t want; /* the seq of the NW_WANT that is answered; n 0: it failed. 0: unasked */
	uint32_t n;
};

/* Closes all of a sandbox. Idempotent. */
struct nw_drop {
	struct nw_head h;
	uint64_t key;
};

/* Replaces all secrets of a sandbox that has had its NW_GRANT; n 0: it has none, and n_ca 0: no
 * authority either. With one, TLS to hosts of secrets and HTTP rules ends here. Bytes follow in
 * this order: the private key and the certificate (PEM) of the authority that the sandbox trusts,
 * then for each secret its value and the certificates (PEM) that its hosts are trusted by. Both
 * sides wipe the message. Flows to hosts of secrets from before are reset, unless only values of
 * log-ins have changed (renews). */
struct nw_secrets {
	struct nw_head h;
	uint64_t key;
	bool renews;
	uint32_t n, n_exchanges;
	uint32_t n_ca_key, n_ca;
};

/* Where a secret replaces its placeholder, and what it is. */
enum nw_secret_use {
	NW_IN_FIELDS = 1, /* in fields of requests to its hosts */
	NW_IN_TOKENS = 2, /* in bodies of requests for tokens, of a log-in */
	NW_REFRESHES = 4, /* it is the log-in's refresh token */
	/* A JSON Web Token keeps its claims inside: its signature alone is the placeholder. */
	NW_SHOWS_CLAIMS = 8,
};

/* A secret: its placeholder in the sandbox, and where its value replaces that. */
struct nw_secret {
	char name[NW_SECRET_NAME_MAX]; /* for events */
	char placeholder[NW_PLACEHOLDER_MAX];
	bool plain; /* over HTTP without TLS, too */
	uint32_t uses; /* of enum nw_secret_use */
	uint32_t n_hosts; /* NAME and SUFFIX rules */
	uint32_t n_value;
	uint32_t n_trust; /* 0: the host's trust store */
};

/* The claims of a JSON Web Token (RFC 7519) with the dot behind them, which may be shown where its
 * signature is not. "": it is none. */
static inline struct str nw_claims(struct str value)
{
	enum { SIGNATURE_MIN = 20 }; /* letters; the shortest of RFC 7518 has 43 */
	const char *first = value.n ? (const char *)memchr(value.p, '.', value.n) : NULL;
	const char *last = value.n ? (const char *)memrchr(value.p, '.', value.n) : NULL;
	size_t n = last ? (size_t)(last - value.p) + 1 : 0;

	if (!str_starts(value, "eyJ") || first == last || value.n - n < SIGNATURE_MIN ||
	    memchr(first + 1, '.', (size_t)(last - first) - 1))
		return STR_LIT("");
	return (struct str){ value.p, n };
}

/* Where a log-in gets tokens. Requests there are read whole, and what a good answer says goes to
 * the hub. */
struct nw_exchange {
	char name[NW_SECRET_NAME_MAX]; /* of the log-in, as its secrets have it */
	char host[NET_HOST_MAX];
	char path[NW_EXCHANGE_PATH_MAX];
	uint16_t port;
	bool begins; /* a new log-in; else only its own refresh token may be exchanged */
};

/* A log-in got these tokens. The hub keeps them, renews the secrets of sandboxes that have the
 * log-in, and then answers with NW_KEPT. The bytes are the body of the answer. */
struct nw_tokens {
	struct nw_head h; /* seq: of the proxy's own counting, never 0 */
	uint64_t key;
	char name[NW_SECRET_NAME_MAX];
	uint32_t n;
};

/* The bytes are the body for the sandbox, with placeholders. */
struct nw_kept {
	struct nw_head h;
	uint64_t key;
	uint32_t ask; /* the seq of the NW_TOKENS */
	bool kept;
	char why[NW_WHY_MAX]; /* not: for the program */
	uint32_t n;
};

struct nw_failed {
	struct nw_head h;
	struct err err;
};

/* A name of a wildcard was asked for. The hub answers with NW_SOCKETS: a FLOW socket at this
 * address for each of the ports. The earlier sockets of the address, if any, are closed by then. */
struct nw_want {
	struct nw_head h; /* seq: of the proxy's own counting, never 0 */
	uint64_t key;
	uint32_t ip;
	uint32_t n_ports;
	uint16_t ports[NW_PORTS_MAX];
	char name[NET_HOST_MAX];
};

/* A request waits until a person has allowed it. The hub answers with NW_VERDICT, at its deadline
 * at the latest. */
struct nw_ask {
	struct nw_head h; /* seq: of the proxy's own counting, never 0 */
	uint64_t key;
	uint16_t port;
	char host[NET_HOST_MAX];
	char method[NW_METHOD_MAX];
	char target[NW_TARGET_MAX]; /* path and query */
	char http[NET_HTTP_TEXT]; /* the rule */
};

/* The one of this seq waits no more. */
struct nw_leave {
	struct nw_head h;
	uint64_t key;
};

struct nw_verdict {
	struct nw_head h;
	uint64_t key;
	uint32_t ask; /* the seq of the NW_ASK */
	bool allow;
	char why[NW_WHY_MAX]; /* not: for the program */
};

enum nw_flow_what {
	NW_FLOW_OPENED = 1, /* the first bytes are checked, and address is connected */
	NW_FLOW_CLOSED, /* a flow that was opened has ended */
	NW_FLOW_DENIED, /* instead of OPENED, or of one request on an open flow */
	NW_FLOW_FAILED, /* allowed, but the host was not reached */
	NW_FLOW_SECRET, /* a secret was put into a request; the first time of each flow */
	NW_FLOW_PLACEHOLDER, /* one was sent where it is not replaced; once for each flow */
	NW_FLOW_MOVED, /* it goes on and has moved bytes; twice a second at most */
};

/* How a flow found its target, as far as known. */
enum nw_flow_by { NW_BY_ADDRESS = 1, NW_BY_PROXY, NW_BY_DNS };

/* X(CODE, name, text): stable names for audit records. */
#define NW_REASONS(X)                                                                              \
	X(NONE, "none", "")                                                                        \
	X(NOT_GRANTED, "not_granted", "not granted to this sandbox")                               \
	X(ADDRESS, "forbidden_address", "the name resolves to a forbidden address")                \
	X(LITERAL, "address_literal", "addresses are not granted, use the name")                   \
	X(NOT_TLS, "not_tls", "only TLS may pass at this port")                                    \
	X(NOT_HTTP, "not_http", "only HTTP or TLS may pass at this port")                          \
	X(BAD_TLS, "bad_tls", "the ClientHello is malformed")                                      \
	X(NO_SNI, "no_sni", "TLS without a server name")                                           \
	X(SNI, "sni_mismatch", "TLS names another host")                                           \
	X(ECH, "ech", "the server name may be encrypted (ECH), and this server could read it")     \
	X(BAD_HTTP, "bad_http", "the HTTP request is malformed or ambiguous")                      \
	X(HOST, "host_mismatch", "the HTTP request names another host")                            \
	X(METHOD, "http_rule", "no HTTP rule allows this request")                                 \
	X(OPAQUE, "http_rule_tls", "HTTP rules can't be applied inside TLS")                       \
	X(CONNECT, "connect", "CONNECT belongs to the proxy's own address")                        \
	X(UPGRADE, "upgrade", "the server refused the upgrade")                                    \
	X(LIMIT_FLOWS, "limit_flows", "too many connections at once")                              \
	X(LIMIT_RATE, "limit_rate", "too many new connections a second")                           \
	X(LIMIT_HOST, "limit_host", "the proxy is out of descriptors or memory")                   \
	X(SLOW, "slow", "no first bytes in time")                                                  \
	X(IDLE, "idle", "no bytes for too long")                                                   \
	X(RESOLVE, "resolve_failed", "the name does not resolve")                                  \
	X(DIAL, "connect_failed", "the host can't be reached")                                     \
	X(UPSTREAM, "proxy_failed", "the network's own proxy does not reach it")                   \
	X(REVOKED, "revoked", "the grant was taken back")                                          \
	X(DROPPED, "dropped", "the sandbox ended")                                                 \
	X(PEER, "broken", "the connection broke")                                                  \
	X(BAD_PROXY, "bad_proxy", "not HTTP and not SOCKS5 with CONNECT")                          \
	X(TRUST, "bad_certificate", "the server's certificate is not trusted")                     \
	X(ANSWER, "bad_answer", "the server's answer can't be searched for secrets")               \
	X(ASKED, "http_asked", "a person has to allow this request")                               \
	X(TOKENS, "bad_tokens", "this request for tokens is not the log-in's own")

enum nw_reason {
#define X(code, name, text) NW_REASON_##code,
	NW_REASONS(X)
#undef X
		NW_REASONS_N
};

/* Never blocks the proxy: if the hub doesn't read, events are dropped, and the next one says how
 * many. */
struct nw_flow {
	struct nw_head h; /* seq 0 */
	uint64_t key;
	uint64_t flow; /* unique in this process; 0: of none, such as a query of a name */
	uint64_t up, down; /* bytes so far, from the sandbox and to it */
	uint64_t new_up, new_down; /* of MOVED and CLOSED: those that no event has told before */
	uint64_t ms; /* since it was accepted */
	uint64_t lost; /* events before this one that were dropped since the last */
	uint32_t what; /* enum nw_flow_what */
	uint32_t by; /* enum nw_flow_by */
	uint32_t reason; /* enum nw_reason */
	int32_t rule; /* index in the sandbox's rules; -1: none */
	uint16_t port;
	struct net_addr addr; /* that was dialled, or that was refused */
	char host[NET_HOST_MAX]; /* that was asked for; cleaned for logs, "" if there is none */
	char secret[NW_SECRET_NAME_MAX]; /* of SECRET and PLACEHOLDER */
	/* of METHOD: the request, cut, and the rule as of net_http_print(); "": none matched */
	char method[NET_METHOD_MAX];
	char path[NET_PATTERN_MAX];
	char http[NET_HTTP_TEXT];
};

/* The stable name ("sni_mismatch") and the text of a reason; borrowed for ever. */
const char *nw_reason_name(uint32_t reason);
const char *nw_reason_text(uint32_t reason);
