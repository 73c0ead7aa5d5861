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

static enum wire wire_of(enum field_kind kind)
{
	switch (kind) {
	case FIELD_IS_STR:
	case FIELD_IS_STRS:
	case FIELD_IS_OBJECT:
	case FIELD_IS_OBJECTS:
		return WIRE_BYTES;
	case FIELD_IS_REAL:
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

static int write_message(const struct field_table *t, struct str bytes, struct json_writer *w,
			 struct err *e);

static int write_value(const struct field *f, const struct found *x, struct json_writer *w,
		       struct err *e)
{
	switch (f->kind) {
	case FIELD_IS_STR:
	case FIELD_IS_STRS:
		if (f->flags & FIELD_BYTES) {
			json_write_base64(w, x->bytes);
			break;
		}
		if (!utf8_valid(x->bytes))
			return err_set(e, ERR_INVALID, "%s is not UTF-8 text", f->name);
		json_write_str(w, x->bytes);
		break;
	case FIELD_IS_BOOL:
		json_write_bool(w, x->value != 0);
		break;
	case FIELD_IS_INT32:
		json_write_int(w, (int32_t)x->value);
		break;
	case FIELD_IS_UINT32:
		json_write_uint(w, (uint32_t)x->value);
		break;
	case FIELD_IS_OBJECT:
	case FIELD_IS_OBJECTS:
		return write_message(f->table, x->bytes, w, e) < 0 ? err_wrap(e, "%s", f->name) : 0;
	default:
		return err_set(e, ERR_BUG, "%s: no request has that", f->name);
	}
	return 0;
}

static bool is_repeated(const struct field *f)
{
	return f->kind == FIELD_IS_STRS || f->kind == FIELD_IS_OBJECTS;
}

static unsigned number_of(const struct field_table *t, const struct field *f)
{
	return 1 + (unsigned)(f - t->rows);
}

/* In another form it is one that is not known. */
static bool is_of(const struct found *x, const struct field_table *t, const struct field *f)
{
	return x->number == number_of(t, f) && x->wire == wire_of(f->kind);
}

/* The member of one row, if it is there. */
static int write_member(const struct field_table *t, const struct field *f, struct str bytes,
			struct json_writer *w, struct err *e)
{
	bool merges = f->kind == FIELD_IS_OBJECT, repeated = is_repeated(f);
	autobuf struct buf merged = BUF_INIT(bytes.n);
	struct found x, last = { .number = 0 };
	int got;

	while ((got = take_field(&bytes, &x, e)) > 0) {
		if (!is_of(&x, t, f))
			continue;
		if (last.number == 0) {
			json_write_key(w, f->name);
			if (repeated)
				json_write_array(w);
		}
		last = x;
		/* Two messages behind each other are one with the members of both. */
		if (merges && buf_add(&merged, x.bytes.p, x.bytes.n, e) < 0)
			return -1;
		if (repeated && write_value(f, &x, w, e) < 0)
			return -1;
	}
	if (got < 0 || last.number == 0)
		return got;
	if (merges)
		last.bytes = buf_str(&merged);
	if (!repeated)
		return write_value(f, &last, w, e);
	json_write_array_end(w);
	return 0;
}

/* The row of the last field that has one; NULL: none. */
static int find_last(const struct field_table *t, struct str bytes, const struct field **ret,
		     struct err *e)
{
	struct found x;
	int got;

	*ret = NULL;
	while ((got = take_field(&bytes, &x, e)) > 0) {
		if (x.number <= t->n && is_of(&x, t, &t->rows[x.number - 1]))
			*ret = &t->rows[x.number - 1];
	}
	return got;
}

static bool is_one_of(const struct field_table *t)
{
	size_t i = 0;

	while (i < t->n && t->rows[i].has)
		i++;
	return i == t->n;
}

static int write_message(const struct field_table *t, struct str bytes, struct json_writer *w,
			 struct err *e)
{
	const struct field *only = NULL;
	bool one_of = is_one_of(t);

	if (one_of && find_last(t, bytes, &only, e) < 0)
		return -1;
	json_write_object(w);
	for (const struct field *f = t->rows; f < t->rows + t->n; f++) {
		if ((!one_of || only == f) && write_member(t, f, bytes, w, e) < 0)
			return -1;
	}
	json_write_object_end(w);
	return 0;
}

int proto_to_json(const struct field_table *t, struct str bytes, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	return write_message(t, bytes, &w, e) < 0 ? -1 : json_write_done(&w, e);
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

static int put_tag(struct buf *to, unsigned number, enum wire wire, struct err *e)
{
	return put_number(to, (uint64_t)number << 3 | (unsigned)wire, e);
}

static int put_integer(struct buf *to, unsigned number, uint64_t v, struct err *e)
{
	return v == 0 ? 0 : put_tag(to, number, WIRE_NUMBER, e) < 0 ? -1 : put_number(to, v, e);
}

static int put_bytes(struct buf *to, unsigned number, struct str bytes, struct err *e)
{
	return put_tag(to, number, WIRE_BYTES, e) < 0 || put_number(to, bytes.n, e) < 0
		     ? -1
		     : buf_add(to, bytes.p, bytes.n, e);
}

static int put_real(struct buf *to, unsigned number, double d, struct err *e)
{
	uint64_t bits;
	char text[8];

	memcpy(&bits, &d, sizeof(bits));
	if (bits == 0)
		return 0;
	for (unsigned i = 0; i < 8; i++)
		text[i] = (char)(bits >> 8 * i);
	return put_tag(to, number, WIRE_8_BYTES, e) < 0 ? -1 : buf_add(to, text, sizeof(text), e);
}

static int put_row(struct buf *to, unsigned number, const struct field *row, const void *from,
		   struct err *e)
{
	const char *at = (const char *)from + row->at;
	autobuf struct buf inner = BUF_INIT(to->max);

	switch (row->kind) {
	case FIELD_IS_BOOL:
		return put_integer(to, number, *(const bool *)at, e);
	case FIELD_IS_INT32:
		return put_integer(to, number, (uint64_t)(int64_t) * (const int32_t *)at, e);
	case FIELD_IS_UINT32:
		return put_integer(to, number, *(const uint32_t *)at, e);
	case FIELD_IS_INT64:
	case FIELD_IS_UINT64:
		return put_integer(to, number, *(const uint64_t *)(const void *)at, e);
	case FIELD_IS_REAL:
		return put_real(to, number, *(const double *)(const void *)at, e);
	case FIELD_IS_STR: {
		struct str s = *(const struct str *)(const void *)at;

		return s.n ? put_bytes(to, number, s, e) : 0;
	}
	case FIELD_IS_OBJECT:
		return proto_encode(row->table, at, &inner, e) < 0
			     ? -1
			     : put_bytes(to, number, buf_str(&inner), e);
	default:
		return err_set(e, ERR_BUG, "%s: no message has that", row->name);
	}
}

int proto_encode(const struct field_table *t, const void *from, struct buf *to, struct err *e)
{
	for (const struct field *f = t->rows; f < t->rows + t->n; f++) {
		if (f->has && !*(const bool *)((const char *)from + f->has - 1))
			continue;
		if (put_row(to, number_of(t, f), f, from, e) < 0)
			return -1;
	}
	return 0;
}
