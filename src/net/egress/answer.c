#include "net/egress/answer.h"

#include <inttypes.h>

#include "net/egress/head.h"
#include "net/egress/swap.h"

enum { STATUS_AT = 9, STATUS_END = 12 /* in "HTTP/1.1 200 OK" */ };

struct seen {
	bool has_length, has_coding, keeps, old;
};

static const char *read_line(struct str line, struct answer *a, struct seen *seen)
{
	if (line.n < STATUS_END || memcmp(line.p, "HTTP/1.", 7) != 0 ||
	    (line.p[7] != '0' && line.p[7] != '1') || line.p[8] != ' ' ||
	    (line.n > STATUS_END && line.p[STATUS_END] != ' '))
		return "the answer's first line is no HTTP/1";
	for (size_t i = STATUS_AT; i < STATUS_END; i++) {
		if (!head_is_digit(line.p[i]))
			return "the answer has no status";
		a->status = a->status * 10 + (line.p[i] - '0');
	}
	for (size_t i = STATUS_END; i < line.n; i++) {
		if ((unsigned char)line.p[i] < 0x20 && line.p[i] != '\t')
			return "the answer's first line has a control character";
	}
	seen->old = line.p[7] == '0';
	a->line = line;
	return a->status < 100 ? "the answer has no status" : NULL;
}

static const char *read_field(struct str name, struct str value, struct answer *a,
			      struct seen *seen)
{
	struct str item;

	if (head_is(name, "content-length")) {
		if (seen->has_length || !head_length(value, &a->body.left))
			return "the answer's Content-Length is ambiguous";
		seen->has_length = true;
	} else if (head_is(name, "transfer-encoding")) {
		if (seen->has_coding || seen->old || !head_is(value, "chunked"))
			return "the answer's Transfer-Encoding is not chunked alone";
		seen->has_coding = true;
	} else if (head_is(name, "content-encoding")) {
		if (value.n > 0 && !head_is(value, "identity"))
			a->coded = true;
	} else if (head_is(name, "connection")) {
		while (head_item(&value, &item)) {
			if (head_is(item, "close"))
				a->last = true;
			else if (head_is(item, "keep-alive"))
				seen->keeps = true;
		}
	}
	return NULL;
}

static const char *read_fields(struct answer *a, struct seen *seen)
{
	struct str rest = a->fields, name, value;
	const char *why;

	for (unsigned i = 0; rest.n > 0; i++) {
		if (i == HEAD_FIELDS_MAX)
			return "the answer has too many fields";
		why = head_field(&rest, &name, &value);
		if (!why)
			why = read_field(name, value, a, seen);
		if (why)
			return why;
	}
	return seen->has_length && seen->has_coding
		     ? "the answer's Content-Length and Transfer-Encoding exclude each other"
		     : NULL;
}

/* RFC 9112 section 6.3. */
static void set_body(struct answer *a, const struct seen *seen, bool bodiless)
{
	a->last = a->last || (seen->old && !seen->keeps);
	if (bodiless || a->status < 200 || a->status == 204 || a->status == 304) {
		a->body = (struct body){ .kind = BODY_NONE };
	} else if (seen->has_coding) {
		/* its client gets another frame */
		a->body = (struct body){ .kind = BODY_CHUNKED, .lenient = true };
	} else if (seen->has_length) {
		a->body.kind = a->body.left > 0 ? BODY_LENGTH : BODY_NONE;
	} else {
		a->until_end = a->last = true;
	}
}

enum request_state answer_read(struct str bytes, size_t *scanned, bool bodiless, struct answer *ret,
			       const char **ret_why)
{
	struct answer a = { .n = 0 };
	struct seen seen = { .has_length = false };
	struct str head = bytes, line;
	bool bad;

	a.n = head_end(bytes, scanned, &bad);
	if (a.n == 0 && !bad)
		return REQUEST_MORE;
	head.n = a.n - 2;
	if (bad || !head_line(&head, &line)) {
		*ret_why = "a line of the answer does not end in CR LF, or is empty";
		return REQUEST_BAD;
	}
	a.fields = head;
	*ret_why = read_line(line, &a, &seen);
	if (!*ret_why)
		*ret_why = read_fields(&a, &seen);
	if (*ret_why)
		return REQUEST_BAD;
	set_body(&a, &seen, bodiless);
	*ret = a;
	return REQUEST_DONE;
}

/* Fields about this connection, or about how the body comes. */
static bool is_left_out(struct str name, enum answer_frame frame)
{
	return head_is(name, "connection") || head_is(name, "keep-alive") ||
	       head_is(name, "transfer-encoding") || head_is(name, "trailer") ||
	       head_is(name, "upgrade") || head_is(name, "alt-svc") ||
	       (head_is(name, "content-length") && frame != ANSWER_NO_BODY);
}

static int write_line(const struct swaps *swaps, struct str line, struct buf *out, struct err *e)
{
	return swaps_run(swaps, line, true, out, e) < 0 ? -1 : buf_add(out, "\r\n", 2, e);
}

int answer_write(const struct answer *a, const struct swaps *swaps, enum answer_frame frame,
		 uint64_t length, bool close, struct buf *out, struct err *e)
{
	struct str rest = a->fields, line, cut, name;

	if (write_line(swaps, a->line, out, e) < 0)
		return -1;
	while (head_line(&rest, &line)) {
		cut = line;
		if (head_cut(&cut, ':', &name) && !is_left_out(name, frame) &&
		    write_line(swaps, line, out, e) < 0)
			return -1;
	}
	if (frame == ANSWER_LENGTH &&
	    buf_addf(out, e, "Content-Length: %" PRIu64 "\r\n", length) < 0)
		return -1;
	if (frame == ANSWER_CHUNKED && buf_addf(out, e, "Transfer-Encoding: chunked\r\n") < 0)
		return -1;
	if (close && buf_addf(out, e, "Connection: close\r\n") < 0)
		return -1;
	return buf_add(out, "\r\n", 2, e);
}
