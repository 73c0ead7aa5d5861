#include "door/http/proto.h"

#include "json/document/utf8.h"
#include "json/document/write.h"

enum wire {
	WIRE_NUMBER,
	WIRE_8_BYTES,
	WIRE_BYTES,
	WIRE_GROUP, /* of proto2: fields up to its end */
	WIRE_GROUP_END,
	WIRE_4_BYTES,
};
enum { NUMBER_MAX = (1 << 29) - 1 };

static enum wire wire_of(enum proto_kind kind)
{
	switch (kind) {
	case PROTO_TEXT:
	case PROTO_BYTES:
	case PROTO_MESSAGE:
		return WIRE_BYTES;
	case PROTO_REAL:
		return WIRE_8_BYTES;
	default:
		return WIRE_NUMBER;
	}
}

/* ---- in -------------------------------------------------------------------------------------- */

/* A field as it comes. */
struct found {
	uint64_t number, value;
	enum wire wire;
	struct str bytes;
};

/* Bits beyond 64 are dropped. */
static int take_number(struct str *left, uint64_t *ret, struct err *e)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		unsigned char c;

		if (left->n == 0)
			return err_set(e, ERR_INVALID, "the message ends within a number");
		c = (unsigned char)left->p[0];
		*left = (struct str){ left->p + 1, left->n - 1 };
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80) {
			*ret = v;
			return 0;
		}
	}
	return err_set(e, ERR_INVALID, "a number in the message has more than ten bytes");
}

/* One field, or where a group begins or ends. */
static int take_one(struct str *left, struct found *ret, struct err *e)
{
	uint64_t tag = 0, n = 0;

	if (take_number(left, &tag, e) < 0)
		return -1;
	*ret = (struct found){ .number = tag >> 3, .wire = (enum wire)(tag & 7) };
	if (ret->number == 0 || ret->number > NUMBER_MAX)
		return err_set(e, ERR_INVALID, "a field of the message has no valid number");
	switch (ret->wire) {
	case WIRE_NUMBER:
		return take_number(left, &ret->value, e);
	case WIRE_GROUP:
	case WIRE_GROUP_END:
		return 0;
	case WIRE_BYTES:
		if (take_number(left, &n, e) < 0)
			return -1;
		break;
	case WIRE_8_BYTES:
		n = 8;
		break;
	case WIRE_4_BYTES:
		n = 4;
		break;
	default:
		return err_set(e, ERR_INVALID, "field %llu of the message is of no known form",
			       (unsigned long long)ret->number);
	}
	if (n > left->n)
		return err_set(e, ERR_INVALID, "the message ends within a field");
	ret->bytes = (struct str){ left->p, (size_t)n };
	*left = (struct str){ left->p + n, left->n - (size_t)n };
	return 0;
}

/* 1; 0 at the end. No row is a group, so what stands in one is read over. */
static int take_field(struct str *left, struct found *ret, struct err *e)
{
	struct found within;
	size_t depth; /* of groups */

	if (left->n == 0)
		return 0;
	if (take_one(left, ret, e) < 0)
		return -1;
	if (ret->wire == WIRE_GROUP_END)
		return err_set(e, ERR_INVALID, "a group of the message ends that has not begun");
	depth = ret->wire == WIRE_GROUP;
	while (depth > 0) {
		if (take_one(left, &within, e) < 0)
			return -1;
		depth += within.wire == WIRE_GROUP;
		depth -= within.wire == WIRE_GROUP_END;
	}
	return 1;
}

static int write_message(const struct proto_message *m, struct str bytes, struct json_writer *w,
			 struct err *e);

static int write_value(const struct proto_field *f, const struct found *x, struct json_writer *w,
		       struct err *e)
{
	switch (f->kind) {
	case PROTO_TEXT:
		if (!utf8_valid(x->bytes))
			return err_set(e, ERR_INVALID, "%s is not UTF-8 text", f->name);
		json_write_str(w, x->bytes);
		break;
	case PROTO_BYTES:
		json_write_base64(w, x->bytes);
		break;
	case PROTO_BOOL:
		json_write_bool(w, x->value != 0);
		break;
	case PROTO_INT:
		json_write_int(w, (int32_t)x->value);
		break;
	case PROTO_UINT:
		json_write_uint(w, (uint32_t)x->value);
		break;
	case PROTO_REAL:
		return err_set(e, ERR_BUG, "%s: no request has such a number", f->name);
	case PROTO_MESSAGE:
		return write_message(f->of, x->bytes, w, e) < 0 ? err_wrap(e, "%s", f->name) : 0;
	}
	return 0;
}

/* In another form it is one that is not known. */
static bool is_of(const struct found *x, const struct proto_field *f)
{
	return x->number == f->number && x->wire == wire_of(f->kind);
}

/* The member of one row, if it is there. */
static int write_member(const struct proto_field *f, struct str bytes, struct json_writer *w,
			struct err *e)
{
	bool merges = f->kind == PROTO_MESSAGE && !f->repeated;
	autobuf struct buf merged = BUF_INIT(bytes.n);
	struct found x, last = { .number = 0 };
	int got;

	while ((got = take_field(&bytes, &x, e)) > 0) {
		if (!is_of(&x, f))
			continue;
		if (last.number == 0) {
			json_write_key(w, f->name);
			if (f->repeated)
				json_write_array(w);
		}
		last = x;
		/* Two messages behind each other are one with the members of both. */
		if (merges && buf_add(&merged, x.bytes.p, x.bytes.n, e) < 0)
			return -1;
		if (f->repeated && write_value(f, &x, w, e) < 0)
			return -1;
	}
	if (got < 0 || last.number == 0)
		return got;
	if (merges)
		last.bytes = buf_str(&merged);
	if (!f->repeated)
		return write_value(f, &last, w, e);
	json_write_array_end(w);
	return 0;
}

/* The row of the last field that has one; NULL: none. */
static int find_last(const struct proto_message *m, struct str bytes,
		     const struct proto_field **ret, struct err *e)
{
	struct found x;
	int got;

	*ret = NULL;
	while ((got = take_field(&bytes, &x, e)) > 0) {
		for (size_t i = 0; i < m->n; i++)
			*ret = is_of(&x, &m->p[i]) ? &m->p[i] : *ret;
	}
	return got;
}

static int write_message(const struct proto_message *m, struct str bytes, struct json_writer *w,
			 struct err *e)
{
	const struct proto_field *only = NULL;

	if (m->one_of && find_last(m, bytes, &only, e) < 0)
		return -1;
	json_write_object(w);
	for (size_t i = 0; i < m->n; i++) {
		if (m->one_of && only != &m->p[i])
			continue;
		if (write_member(&m->p[i], bytes, w, e) < 0)
			return -1;
	}
	json_write_object_end(w);
	return 0;
}

int proto_to_json(const struct proto_message *m, struct str bytes, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	return write_message(m, bytes, &w, e) < 0 ? -1 : json_write_done(&w, e);
}

/* ---- out ------------------------------------------------------------------------------------- */

static int put_number(struct buf *to, uint64_t v, struct err *e)
{
	char text[10];
	size_t n = 0;

	do {
		text[n++] = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		v >>= 7;
	} while (v);
	return buf_add(to, text, n, e);
}

static int put_tag(struct buf *to, const struct proto_field *f, struct err *e)
{
	return put_number(to, (uint64_t)f->number << 3 | (unsigned)wire_of(f->kind), e);
}

static int put_integer(struct buf *to, const struct proto_field *f, uint64_t v, struct err *e)
{
	return v == 0 ? 0 : put_tag(to, f, e) < 0 ? -1 : put_number(to, v, e);
}

static int put_bytes(struct buf *to, const struct proto_field *f, struct str bytes, struct err *e)
{
	return put_tag(to, f, e) < 0 || put_number(to, bytes.n, e) < 0
		     ? -1
		     : buf_add(to, bytes.p, bytes.n, e);
}

static int put_real(struct buf *to, const struct proto_field *f, double d, struct err *e)
{
	uint64_t bits;
	char text[8];

	memcpy(&bits, &d, sizeof(bits));
	if (bits == 0)
		return 0;
	for (unsigned i = 0; i < 8; i++)
		text[i] = (char)(bits >> 8 * i);
	return put_tag(to, f, e) < 0 ? -1 : buf_add(to, text, sizeof(text), e);
}

static int put_row(struct buf *to, const struct proto_field *f, const struct field *row,
		   const void *from, struct err *e)
{
	const char *at = (const char *)from + row->at;
	autobuf struct buf inner = BUF_INIT(to->max);

	switch (row->kind) {
	case FIELD_IS_BOOL:
		return put_integer(to, f, *(const bool *)at, e);
	case FIELD_IS_INT32:
		return put_integer(to, f, (uint64_t)(int64_t) * (const int32_t *)at, e);
	case FIELD_IS_UINT32:
		return put_integer(to, f, *(const uint32_t *)at, e);
	case FIELD_IS_INT64:
	case FIELD_IS_UINT64:
		return put_integer(to, f, *(const uint64_t *)(const void *)at, e);
	case FIELD_IS_REAL:
		return put_real(to, f, *(const double *)(const void *)at, e);
	case FIELD_IS_STR: {
		struct str s = *(const struct str *)(const void *)at;

		return s.n ? put_bytes(to, f, s, e) : 0;
	}
	case FIELD_IS_OBJECT:
		return proto_encode(f->of, row->table, at, &inner, e) < 0
			     ? -1
			     : put_bytes(to, f, buf_str(&inner), e);
	default:
		return err_set(e, ERR_BUG, "%s: no message has that", row->name);
	}
}

int proto_encode(const struct proto_message *m, const struct field_table *t, const void *from,
		 struct buf *to, struct err *e)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct field *row = t->rows, *end = t->rows + t->n;

		while (row < end && strcmp(row->name, m->p[i].name) != 0)
			row++;
		if (row == end || (row->has && !*(const bool *)((const char *)from + row->has - 1)))
			continue;
		if (put_row(to, &m->p[i], row, from, e) < 0)
			return -1;
	}
	return 0;
}
