#include "http/client/sse.h"

#include <string.h>

#define BOM "\xef\xbb\xbf"

enum { KEEP = 64 << 10 }; /* a larger buffer is freed once it is empty */

void sse_init(struct sse_reader *r, size_t max, struct budget *of)
{
	if (!max)
		max = SSE_EVENT_MAX_DEFAULT;
	*r = (struct sse_reader){ .line = { .max = max, .of = of },
				  .data = { .max = max, .of = of },
				  .retry_ms = -1 };
}

void sse_fini(struct sse_reader *r)
{
	buf_fini(&r->line);
	buf_fini(&r->data);
}

/* `to` has enough room. */
static void take_text(char *to, struct str value)
{
	memcpy(to, value.p, value.n);
	to[value.n] = '\0';
}

static void sse_empty(struct buf *b)
{
	if (b->cap > KEEP)
		buf_fini(b);
	b->n = 0;
}

void sse_restart(struct sse_reader *r)
{
	sse_empty(&r->line);
	sse_empty(&r->data);
	r->type_n = 0;
	take_text(r->next_id, str_of(r->id));
	r->begun = r->after_cr = r->given = false;
}

/* Accepts digits only; a number that does not fit is ignored. */
static void take_retry(struct sse_reader *r, struct str value)
{
	int64_t ms = 0;

	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9' || ms > INT64_MAX / 10 - 9)
			return;
		ms = ms * 10 + (value.p[i] - '0');
	}
	if (value.n > 0)
		r->retry_ms = ms;
}

/* A long line is not copied: its buffer becomes the data, so it is never in memory twice. */
static int take_data(struct sse_reader *r, struct str value, struct err *e)
{
	struct buf line = r->line;

	if (r->data.n == 0 && line.n > KEEP) {
		buf_drop(&line, (size_t)(value.p - line.p));
		r->line = r->data;
		r->data = line;
	} else if (buf_add(&r->data, value.p, value.n, e) < 0) {
		return -1;
	}
	return buf_add(&r->data, "\n", 1, e);
}

static int take_field(struct sse_reader *r, struct str name, struct str value, struct err *e)
{
	if (str_is(name, "data"))
		return take_data(r, value, e);
	if (str_is(name, "event")) {
		r->type_n = value.n < SSE_TYPE_MAX ? value.n : SSE_TYPE_MAX;
		memcpy(r->type, value.p, r->type_n);
	} else if (str_is(name, "id") && value.n <= SSE_ID_MAX && !memchr(value.p, 0, value.n)) {
		take_text(r->next_id, value);
	} else if (str_is(name, "retry")) {
		take_retry(r, value);
	}
	return 0;
}

/* Handles a complete line: 1 if it ends an event that has data. */
static int take_line(struct sse_reader *r, struct str line, struct sse_event *ret, struct err *e)
{
	const char *colon;
	struct str name = line, value = STR_LIT("");

	if (line.n == 0) {
		take_text(r->id, str_of(r->next_id));
		if (r->data.n == 0) {
			r->type_n = 0;
			return 0;
		}
		*ret = (struct sse_event){
			.type = r->type_n > 0 ? (struct str){ r->type, r->type_n }
					      : STR_LIT("message"),
			.data = { r->data.p, r->data.n - 1 },
			.id = str_of(r->id),
		};
		r->given = true;
		return 1;
	}
	colon = memchr(line.p, ':', line.n);
	if (colon) {
		name.n = (size_t)(colon - line.p);
		value = (struct str){ colon + 1, line.n - name.n - 1 };
		if (value.n > 0 && value.p[0] == ' ')
			value = (struct str){ value.p + 1, value.n - 1 };
	}
	return take_field(r, name, value, e);
}

/* The first CR or LF. Searching for one after the other would scan a text with many of one kind
 * again and again. */
static const char *line_end(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\n' || s.p[i] == '\r')
			return s.p + i;
	}
	return NULL;
}

static void sse_skip(struct str *s, size_t n)
{
	s->p += n;
	s->n -= n;
}

/* Takes a line off *input: 1 with the line, borrowed from input or r->line; 0 if it is
 * incomplete. */
static int cut_line(struct sse_reader *r, struct str *input, struct str *ret, struct err *e)
{
	const char *end;

	if (r->after_cr && input->n > 0) {
		sse_skip(input, input->p[0] == '\n');
		r->after_cr = false;
	}
	if (input->n == 0)
		return 0;
	end = line_end(*input);
	if (end && r->line.n == 0) {
		*ret = (struct str){ input->p, (size_t)(end - input->p) };
	} else {
		size_t n = end ? (size_t)(end - input->p) : input->n;

		if (n > 0 && buf_add(&r->line, input->p, n, e) < 0)
			return -1;
		*ret = buf_str(&r->line);
	}
	sse_skip(input, end ? (size_t)(end - input->p) + 1 : input->n);
	r->after_cr = end && *end == '\r';
	return end != NULL;
}

int sse_next(struct sse_reader *r, struct str *input, struct sse_event *ret, struct err *e)
{
	struct str line;
	int rc;

	if (r->given) {
		r->given = false;
		sse_empty(&r->data);
		r->type_n = 0;
	}
	while ((rc = cut_line(r, input, &line, e)) > 0) {
		if (!r->begun && str_starts(line, BOM))
			sse_skip(&line, strlen(BOM));
		r->begun = true;
		rc = take_line(r, line, ret, e);
		sse_empty(&r->line);
		if (rc)
			break;
	}
	return rc;
}
