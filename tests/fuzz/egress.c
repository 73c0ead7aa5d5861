/*
 * What a sandbox says to the egress proxy. The first byte chooses the parser, the second one the
 * size of pieces. A head that grows gives what it gives as a whole; what is taken names one host; a
 * request that is written anew is the same request; bodies end at the same byte wherever they are
 * cut.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "net/egress/answer.h"
#include "net/egress/dns.h"
#include "net/egress/exchange.h"
#include "net/egress/form.h"
#include "net/egress/hello.h"
#include "net/egress/request.h"
#include "net/egress/sniff.h"
#include "net/egress/socks.h"
#include "net/egress/swap.h"
#include "net/wire/http.h"

static void check_host(const char *host)
{
	char again[NET_HOST_MAX];
	struct net_addr a;

	MUST(net_host_read(str_of(host), again) && strcmp(host, again) == 0);
	MUST(!net_addr_parse(str_of(host), &a));
}

static void try_hello(struct str in, size_t step)
{
	struct hello h, other;
	enum hello_state whole = hello_read(in, &h);
	bool any;

	if (whole == HELLO_DONE) {
		MUST(h.n > 0 && h.n <= in.n);
		if (h.has_name)
			check_host(h.name);
		for (size_t n = 0; n < h.n; n += step)
			MUST(hello_read((struct str){ in.p, n }, &other) == HELLO_MORE);
	}
	if (hello_read_second(in, &other, &any) == HELLO_DONE && any)
		MUST(other.n <= in.n);
	(void)hello_read_server(in, &any);
}

static void try_body(struct body body, struct str in, size_t step)
{
	struct body pieces = body;
	ssize_t whole, sum = 0, n = 0;
	bool end = false, ends = false;

	if (body.kind == BODY_NONE)
		return;
	whole = body_take(&body, in, &ends);
	for (size_t at = 0; at < in.n && !end && n >= 0; at += step) {
		n = body_take(&pieces,
			      (struct str){ in.p + at, in.n - at < step ? in.n - at : step }, &end);
		sum = n < 0 ? -1 : sum + n;
	}
	MUST(sum == whole && (whole < 0 || in.n == 0 || end == ends));
}

static void check_written(const struct request *r, const struct buf *out)
{
	struct request again;
	const char *why;
	size_t from = 0;

	MUST(request_read(buf_str(out), &from, &again, &why) == REQUEST_DONE);
	MUST(again.n == out->n && str_eq(again.method, r->method) && str_eq(again.path, r->path));
	MUST(again.form == REQUEST_ORIGIN && again.host.n == r->host.n && !again.websocket);
	MUST(again.body.kind == r->body.kind && again.body.left == r->body.left);
}

/* As a server may read it: with parameters, or without what it takes for them before it decodes. */
static void read_path(struct str path, bool parameters, char ret[64])
{
	bool in_parameters = false;
	size_t n = 0;

	for (size_t i = 0; i < path.n && n + 1 < 64; i++) {
		int c = (unsigned char)path.p[i];

		in_parameters = !parameters && (in_parameters || c == ';') && c != '/';
		if (in_parameters)
			continue;
		if (c == '%' && i + 2 < path.n) {
			char digits[3] = { path.p[i + 1], path.p[i + 2], 0 };

			c = (int)strtol(digits, NULL, 16);
			i += 2;
		}
		ret[n++] = (char)c;
	}
	ret[n] = '\0';
}

/* What a server may read as the path is never let through where the rules deny that path. */
static void try_decision(struct str method, struct str path)
{
	static const struct net_http_rule deny[] = {
		{ .then = NET_HTTP_DENY, .pattern = "/secret*" },
		{ .then = NET_HTTP_DENY, .pattern = "/a/secret*" },
		{ .then = NET_HTTP_ALLOW, .pattern = "*" },
	};
	static const struct net_http_rule allow[] = {
		{ .then = NET_HTTP_ALLOW, .method = "GET", .pattern = "/public/*" },
	};
	struct net_http_decision d = net_http_decide(deny, 3, 0, method, path);
	char plain[64], bare[64];

	MUST(d.any && (!d.odd || d.then == NET_HTTP_DENY));
	read_path(path, true, plain);
	read_path(path, false, bare);
	MUST(d.then == NET_HTTP_DENY ||
	     (strncmp(plain, "/secret", 7) != 0 && strncmp(bare, "/secret", 7) != 0 &&
	      strncmp(plain, "/a/secret", 9) != 0 && strncmp(bare, "/a/secret", 9) != 0));
	d = net_http_decide(allow, 1, 0, method, path);
	MUST(d.then == NET_HTTP_DENY ||
	     (str_is(method, "GET") && strncmp(plain, "/public/", 8) == 0 &&
	      !strstr(plain, "/../")));
	MUST(!net_http_decide(allow, 1, 1, method, path).any);
}

/* A rule that can be read is written as it was understood. */
static void try_rules(struct str in)
{
	struct net_http_rule r[NET_HTTP_EACH], again;
	char text[NET_HTTP_TEXT];
	struct err e;
	size_t n;

	if (net_http_parse(in, r, NET_HTTP_EACH, &n, &e) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		net_http_print_word(&r[i], text);
		MUST(!strchr(text, ' ') && net_http_parse_word(str_of(text), &again, &e) == 0);
		MUST(net_http_same(&r[i], &again));
	}
	if (net_http_parse_word(in, &again, &e) == 0)
		MUST(again.then < NET_HTTP_THENS);
}

static void try_request(struct str in, size_t step)
{
	struct request r, again;
	const char *why = NULL;
	size_t scanned = 0;
	struct swap of[] = { { .from = STR_LIT("holt-secret-x"), .to = STR_LIT("a value") },
			     { .from = STR_LIT("ab"), .to = STR_LIT("cd") } };
	struct swaps all;
	autobuf struct buf out = BUF_INIT(1 << 20);
	struct err e;
	enum request_state whole = request_read(in, &scanned, &r, &why), state = REQUEST_MORE;

	MUST(whole != REQUEST_BAD || (why && why[0]));
	scanned = 0;
	for (size_t n = 0; n < in.n && state == REQUEST_MORE; n += step)
		state = request_read((struct str){ in.p, n }, &scanned, &again, &why);
	if (state == REQUEST_MORE)
		state = request_read(in, &scanned, &again, &why);
	MUST(state == whole);
	if (whole != REQUEST_DONE)
		return;
	MUST(r.n <= in.n && r.host.n > 0 && r.method.n > 0);
	try_body(r.body, (struct str){ in.p + r.n, in.n - r.n }, step);
	if (r.form == REQUEST_CONNECT)
		return;
	MUST(request_write(&r, false, true, NULL, &out, &e) == 0);
	check_written(&r, &out);
	out.n = 0;
	swaps_init(&all, of, 2);
	MUST(request_write(&r, false, true, &all, &out, &e) == 0);
	check_written(&r, &out);
	try_decision(r.method, r.path);
}

/* A body that can be read is written as it was understood, and each of its members once. */
static void try_exchange(struct str in, bool json)
{
	static const struct str types[] = { STR_LIT("application/x-www-form-urlencoded"),
					    STR_LIT("application/json; charset=utf-8") };
	struct swap of[] = {
		{ .from = STR_LIT("mark"), .to = STR_LIT("va\"l&ue"), .claims = true }
	};
	autobuf struct buf out = BUF_INIT(1 << 20);
	struct exchange x, again;
	struct swaps all;
	struct str token = STR_NONE;
	struct err e;

	swaps_init(&all, of, 1);
	if (exchange_read(types[json], in, &x))
		return;
	MUST(exchange_write(&x, &(struct swaps){ .n = 0 }, &out, &e) == 0);
	MUST(!exchange_read(types[json], buf_str(&out), &again) && again.n == x.n);
	for (size_t i = 0; i < x.n; i++) {
		MUST(str_eq(x.of[i].name, again.of[i].name));
		MUST(str_eq(x.of[i].value, again.of[i].value) && x.of[i].bare == again.of[i].bare);
		for (size_t k = 0; k < i; k++)
			MUST(!str_eq(x.of[i].name, x.of[k].name));
	}
	if (exchange_refreshes(&x, &token))
		MUST(token.p && x.n >= 2);
	out.n = 0;
	MUST(exchange_write(&x, &all, &out, &e) == 0);
	MUST(of[0].hits > 0 || !swaps_whole(&all, token) || !token.p);
}

static void try_answer(struct str in)
{
	autobuf struct buf out = BUF_INIT(1 << 20);
	struct err e;
	size_t n = 0, m = 0;
	int status = response_status(in, &n);

	if (status <= 0)
		return;
	MUST(n <= in.n && status < 1000);
	MUST(response_write_close((struct str){ in.p, n }, &out, &e) == 0);
	MUST(response_status(buf_str(&out), &m) == status && m == out.n);
}

/* Wherever the bytes are cut, the same texts are found, and none is left. */
static void try_swaps(struct str in, size_t step)
{
	struct swap of[] = { { .from = STR_LIT("secret"), .to = STR_LIT("<>") },
			     { .from = STR_LIT("secrets-of"), .to = STR_LIT("[]") },
			     { .from = STR_LIT("ret"), .to = STR_LIT("") },
			     { .from = STR_LIT("aaab"), .to = STR_LIT("#") } };
	autobuf struct buf whole = BUF_INIT(1 << 20), pieces = BUF_INIT(1 << 20);
	autobuf struct buf held = BUF_INIT(1 << 20);
	struct swaps all;
	struct err e;

	swaps_init(&all, of, sizeof(of) / sizeof(of[0]));
	MUST(swaps_run(&all, in, true, &whole, &e) == (ssize_t)in.n);
	for (size_t at = 0; at < in.n; at += step) {
		size_t n = in.n - at < step ? in.n - at : step;
		ssize_t done;

		MUST(buf_add(&held, in.p + at, n, &e) == 0);
		done = swaps_run(&all, buf_str(&held), at + n == in.n, &pieces, &e);
		MUST(done >= 0 && held.n - (size_t)done < sizeof("secrets-of"));
		buf_drop(&held, (size_t)done);
	}
	MUST(held.n == 0 && str_eq(buf_str(&whole), buf_str(&pieces)));
}

static void try_forms(struct str in, size_t step)
{
	autobuf struct buf out = BUF_INIT(1 << 20);
	struct err e;

	for (size_t i = 0; i < FORMS_MAX && in.n >= 8 && in.n < 4096; i++) {
		out.n = 0;
		MUST(form_add(&out, in, i, &e) == 0 && out.n >= 2 && out.n <= form_room(in.n));
	}
}

/* An answer that is taken names one body; as it is passed on, it is the same one. */
static void try_bound_answer(struct str in, size_t step)
{
	struct swap of[] = { { .from = STR_LIT("secret"), .to = STR_LIT("placeholder") } };
	autobuf struct buf out = BUF_INIT(1 << 20);
	struct answer a, again;
	const char *why = NULL;
	size_t scanned = 0;
	struct swaps all;
	struct err e;
	bool head = in.n > 0 && in.p[in.n - 1] == 'h';
	enum request_state whole = answer_read(in, &scanned, head, &a, &why), state = REQUEST_MORE;
	enum answer_frame frame;

	MUST(whole != REQUEST_BAD || (why && why[0]));
	scanned = 0;
	for (size_t n = 0; n < in.n && state == REQUEST_MORE; n += step)
		state = answer_read((struct str){ in.p, n }, &scanned, head, &again, &why);
	if (state == REQUEST_MORE)
		state = answer_read(in, &scanned, head, &again, &why);
	MUST(state == whole);
	if (whole != REQUEST_DONE)
		return;
	MUST(a.n <= in.n && a.status >= 100 && a.status < 1000);
	MUST(!a.until_end || (a.last && a.body.kind == BODY_NONE));
	try_body(a.body, (struct str){ in.p + a.n, in.n - a.n }, step);
	swaps_init(&all, of, 1);
	frame = a.body.kind == BODY_LENGTH		 ? ANSWER_LENGTH
	      : a.body.kind == BODY_NONE && !a.until_end ? ANSWER_NO_BODY
							 : ANSWER_CHUNKED;
	MUST(answer_write(&a, &all, frame, 7, true, &out, &e) == 0);
	MUST(!memmem(out.p, out.n, "secret", 6));
	scanned = 0;
	if (a.line.p[7] == '0')
		return; /* no chunks for HTTP/1.0: such a client gets another frame */
	MUST(answer_read(buf_str(&out), &scanned, head, &again, &why) == REQUEST_DONE);
	MUST(again.n == out.n && again.status == a.status && again.last);
	MUST(frame != ANSWER_LENGTH || (again.body.kind == BODY_LENGTH && again.body.left == 7));
	MUST(frame != ANSWER_CHUNKED || again.body.kind == BODY_CHUNKED);
}

static void try_socks(struct str in)
{
	struct socks_request r;
	uint8_t method[SOCKS_METHOD_BYTES];
	size_t n;

	if (socks_read_methods(in, &n, method) != SOCKS_MORE)
		MUST(n <= in.n);
	if (socks_read_request(in, &r) == SOCKS_DONE)
		MUST(r.n <= in.n && r.port && r.host[0] && strlen(r.host) < sizeof(r.host));
}

static void try_dns(struct str in)
{
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q, again;
	int code = dns_read(in, &q);
	size_t n;

	if (code < 0)
		return;
	MUST(strlen(q.name) < NET_HOST_MAX && q.question_n <= sizeof(q.question));
	n = dns_write(&q, (enum dns_code)code, 0x7f020001, out);
	MUST(n >= 12 && n <= sizeof(out));
	out[2] &= 0x7f; /* as a query it names the same */
	out[7] = 0;
	if (code == DNS_OK && !q.edns) {
		MUST(dns_read((struct str){ (char *)out, 12 + (size_t)q.question_n }, &again) == 0);
		MUST(strcmp(again.name, q.name) == 0 && again.type == q.type);
	}
	if (q.is_host)
		check_host(q.name);
}

static void try_rule(struct str in)
{
	struct net_rule r, again;
	struct net_cidr c;
	char text[NET_RULE_TEXT];
	struct err e;

	if (net_cidr_parse(in, &c))
		MUST(c.bits <= 128 && net_cidr_has(&c, &c.addr));
	if (net_rule_parse(in, true, &r, &e) < 0)
		return;
	if (r.kind != NET_RULE_CIDR)
		check_host(r.host);
	net_rule_print(&r, text);
	MUST(net_rule_parse(str_of(text), true, &again, &e) == 0 && net_rule_same(&r, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str in = { (const char *)data + 2, n - 2 };
	size_t step;

	if (n < 2)
		return 0;
	step = data[1] + 1u;
	switch (data[0] % 14) {
	case 0:
		try_hello(in, step);
		break;
	case 1:
		try_request(in, step);
		break;
	case 2:
		try_answer(in);
		break;
	case 3:
		try_socks(in);
		break;
	case 4:
		try_dns(in);
		break;
	case 5:
		try_rule(in);
		break;
	case 8:
		try_swaps(in, step);
		break;
	case 9:
		try_bound_answer(in, step);
		break;
	case 10:
		try_forms(in, step);
		break;
	case 11:
		try_rules(in);
		try_decision(STR_LIT("GET"), in);
		break;
	case 12:
	case 13:
		try_exchange(in, data[0] % 14 == 13);
		break;
	case 6:
		try_body((struct body){ .kind = BODY_CHUNKED }, in, step);
		break;
	default:
		(void)sniff(in);
	}
	return 0;
}
