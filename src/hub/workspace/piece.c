#include "hub/workspace/piece.h"

#include <pthread.h>

/* A cut follows a byte after which these bits of the hash are 0: every 128 KiB on average. */
#define CUT_MASK (0x1ffffull << 40)

/* Fixed numbers without a pattern (splitmix64): other ones would cut the same files elsewhere. */
static uint64_t gear[256];

static void gear_make(void)
{
	uint64_t seed = 0x686f6c74;

	for (size_t i = 0; i < 256; i++) {
		uint64_t z = seed += 0x9e3779b97f4a7c15;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		gear[i] = z ^ z >> 31;
	}
}

void pieces_init(struct pieces *p, struct objects *o)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, gear_make);
	*p = (struct pieces){ .objects = o,
			      .piece = BUF_INIT(PIECE_MAX),
			      .list = BUF_INIT(OBJECT_MAX) };
}

void pieces_fini(struct pieces *p)
{
	buf_fini(&p->piece);
	buf_fini(&p->list);
}

void pieces_begin(struct pieces *p)
{
	p->piece.n = p->list.n = p->n = 0;
	p->hash = p->bytes = 0;
}

static int put_piece(struct pieces *p, struct err *e)
{
	struct tree_piece made = { .bytes = (uint32_t)p->piece.n };

	if (objects_put(p->objects, OBJECT_PIECE, buf_str(&p->piece), &made.id, e) < 0 ||
	    tree_list_write(&p->list, &made, e) < 0)
		return -1;
	if (p->n++ == 0)
		p->only = made;
	p->piece.n = 0;
	p->hash = 0;
	return 0;
}

/* How many of the next bytes belong to this piece; *ret_cut: it ends there. The hash begins before
 * the least length, as it depends on the last 64 bytes only. */
static size_t find_cut(struct pieces *p, struct str bytes, bool *ret_cut)
{
	size_t room = PIECE_MAX - p->piece.n, max = bytes.n < room ? bytes.n : room, i = 0;
	const uint8_t *at = (const uint8_t *)bytes.p;

	if (p->piece.n + 64 < PIECE_MIN)
		i = PIECE_MIN - 64 - p->piece.n;
	for (; i < max; i++) {
		p->hash = (p->hash << 1) + gear[at[i]];
		if (!(p->hash & CUT_MASK) && p->piece.n + i + 1 >= PIECE_MIN) {
			*ret_cut = true;
			return i + 1;
		}
	}
	*ret_cut = max == room;
	return max;
}

int pieces_add(struct pieces *p, struct str bytes, struct err *e)
{
	p->bytes += bytes.n;
	while (bytes.n) {
		bool cut = false;
		size_t n = find_cut(p, bytes, &cut);

		if (buf_add(&p->piece, bytes.p, n, e) < 0 || (cut && put_piece(p, e) < 0))
			return -1;
		bytes.p += n;
		bytes.n -= n;
	}
	return 0;
}

int pieces_end(struct pieces *p, struct tree_entry *ret, struct err *e)
{
	if ((p->piece.n || !p->n) && put_piece(p, e) < 0)
		return -1;
	ret->type = p->n == 1 ? TREE_PIECE : TREE_PIECES;
	ret->bytes = p->bytes;
	ret->id = p->only.id;
	return p->n == 1 ? 0 : objects_put(p->objects, OBJECT_LIST, buf_str(&p->list), &ret->id, e);
}
