#include "rpc/sniff.h"

static void sniff_keep(struct rpc_sniff *s, char c)
{
	if (s->n < SNIFF_ROOM)
		s->kept[s->n++] = c;
}

static bool kept_is(const struct rpc_sniff *s, const char *z)
{
	return str_is((struct str){ s->kept, s->n }, z);
}

/* A value of the top-level object has ended. */
static void end_value(struct rpc_sniff *s)
{
	if (!s->in_value)
		return;
	s->in_value = false;
	s->twice |= s->id_n > 0;
	s->id_n = s->n;
	memcpy(s->id, s->kept, s->n);
}

/* A key of the top-level object has ended; `kept` holds it with its quotes. */
static void end_key(struct rpc_sniff *s)
{
	if (!s->in_key)
		return;
	s->in_key = false;
	s->method |= kept_is(s, "\"method\"");
	s->in_value = kept_is(s, "\"id\"");
	s->n = 0;
}

static void in_string(struct rpc_sniff *s, char c)
{
	if (s->escaped)
		s->escaped = false;
	else if (c == '\\')
		s->escaped = true;
	else if (c == '"')
		s->in_string = false;
	if (s->in_key || s->in_value)
		sniff_keep(s, c);
}

static void open_string(struct rpc_sniff *s)
{
	s->broken |= s->over;
	s->in_string = true;
	if (s->depth == 1 && s->key_next) {
		s->in_key = true;
		s->key_next = false;
		s->n = 0;
	}
	if (s->in_key || s->in_value)
		sniff_keep(s, '"');
}

static void structure(struct rpc_sniff *s, char c)
{
	s->broken |= s->over;
	switch (c) {
	case '{':
	case '[':
		s->broken |= s->depth == 0 && c == '[';
		s->key_next = ++s->depth == 1;
		break;
	case '}':
	case ']':
		if (s->depth == 1)
			end_value(s);
		s->broken |= s->depth == 0;
		s->depth -= s->depth > 0;
		s->over = s->depth == 0;
		break;
	case ',':
		if (s->depth == 1) {
			end_value(s);
			s->key_next = true;
		}
		break;
	case ':':
		if (s->depth == 1)
			end_key(s);
		return; /* not kept: the colon comes before the value */
	}
	if (s->in_value)
		sniff_keep(s, c);
}

void rpc_sniff_feed(struct rpc_sniff *s, struct str piece)
{
	for (size_t i = 0; i < piece.n; i++) {
		char c = piece.p[i];

		if (s->in_string)
			in_string(s, c);
		else if (c == '"')
			open_string(s);
		else if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			structure(s, c);
	}
}

static void read_id(const struct rpc_sniff *s, struct rpc_id *ret)
{
	struct json_doc *d;
	struct err e;

	ret->n = 0;
	if (s->twice || s->broken || s->depth > 0 || s->id_n == SNIFF_ROOM)
		return;
	d = json_parse((struct str){ s->id, s->id_n }, NULL, &e);
	if (d)
		rpc_id_read(json_root(d), ret);
	json_free(d);
}

void rpc_sniff_id(const struct rpc_sniff *s, struct rpc_id *ret)
{
	ret->n = 0;
	if (s->method)
		read_id(s, ret);
}

void rpc_sniff_answer_id(const struct rpc_sniff *s, struct rpc_id *ret)
{
	ret->n = 0;
	if (!s->method)
		read_id(s, ret);
}
