#include "http/client/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/*
 * The kernel's tables of TCP sockets name the user of each. Our peer's is the one with our two
 * addresses the other way round. Before its program has accepted it, it is nobody's yet; then it is
 * in the queue of a listening socket, and goes to no other program. That socket was there when the
 * connection was made, so it is looked for first: if it had been closed since, so would have been
 * the connection.
 */

struct peer_end {
	unsigned char addr[16]; /* of IPv4: mapped */
	unsigned port;
};

struct peer_row {
	struct peer_end own, other;
	unsigned state, uid;
	unsigned long inode; /* 0: not accepted */
};

enum { PEER_LISTENS = 0x0a };

static void peer_map(const unsigned char v4[4], unsigned char ret[16])
{
	memset(ret, 0, 10);
	memset(ret + 10, 0xff, 2);
	memcpy(ret + 12, v4, 4);
}

static bool peer_end_of(const char *ip, unsigned port, struct peer_end *ret)
{
	struct in_addr v4;

	ret->port = port;
	if (inet_pton(AF_INET, ip, &v4) == 1)
		peer_map((const unsigned char *)&v4, ret->addr);
	else if (inet_pton(AF_INET6, ip, ret->addr) != 1)
		return false;
	return true;
}

/* 127.0.0.0/8 and ::1. */
static bool peer_is_here(const struct peer_end *p)
{
	static const unsigned char v6[16] = { [15] = 1 };
	static const unsigned char v4[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };

	return memcmp(p->addr, v6, 16) == 0 || memcmp(p->addr, v4, 13) == 0;
}

static bool peer_same(const struct peer_end *a, const struct peer_end *b)
{
	return a->port == b->port && memcmp(a->addr, b->addr, 16) == 0;
}

/* Listening sockets may be bound to every address, of either family. */
static bool peer_takes(const struct peer_end *listening, const struct peer_end *to)
{
	static const unsigned char any[16], any4[16] = { [10] = 0xff, [11] = 0xff };

	return peer_same(listening, to) ||
	       (listening->port == to->port &&
		(memcmp(listening->addr, any, 16) == 0 || memcmp(listening->addr, any4, 16) == 0));
}

/* Words of 32 bits in hex, each in the machine's own order. */
static bool peer_read_end(const char *hex, unsigned port, struct peer_end *ret)
{
	size_t words = strlen(hex) / 8;
	unsigned char addr[16];
	unsigned word;

	for (size_t i = 0; i < words && i < 4; i++) {
		if (sscanf(hex + 8 * i, "%8x", &word) != 1)
			return false;
		memcpy(addr + 4 * i, &word, 4);
	}
	if (words == 1)
		peer_map(addr, ret->addr);
	else
		memcpy(ret->addr, addr, 16);
	ret->port = port;
	return words == 1 || words == 4;
}

static bool peer_read_row(const char *line, struct peer_row *ret)
{
	char own[33], other[33];
	unsigned own_port, other_port;

	return sscanf(line, "%*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %u %*d %lu",
		      own, &own_port, other, &other_port, &ret->state, &ret->uid,
		      &ret->inode) == 7 &&
	       peer_read_end(own, own_port, &ret->own) &&
	       peer_read_end(other, other_port, &ret->other);
}

static bool peer_may(unsigned uid)
{
	return uid == geteuid() || uid == 0;
}

/* Whether any rows match, and whose the last one is that belongs to another user. */
struct peer_found {
	bool any, accepted;
	unsigned stranger;
	bool has_stranger;
};

static void peer_look(const struct peer_end *own, const struct peer_end *to, bool listening,
		      struct peer_found *ret)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	struct peer_row row;
	char line[512];

	for (size_t i = 0; i < 2; i++) {
		FILE *f = fopen(tables[i], "re");

		while (f && fgets(line, sizeof(line), f)) {
			if (!peer_read_row(line, &row) ||
			    !(listening ? row.state == PEER_LISTENS && peer_takes(&row.own, to)
					: peer_same(&row.own, to) && peer_same(&row.other, own)))
				continue;
			ret->any = true;
			ret->accepted |= row.inode != 0;
			if ((listening || row.inode) && !peer_may(row.uid)) {
				ret->has_stranger = true;
				ret->stranger = row.uid;
			}
		}
		if (f)
			fclose(f);
	}
}

static int peer_denied(unsigned uid, struct err *e)
{
	return err_set(e, ERR_DENIED,
		       "another user (uid %u) answers there, and gets no token of this one", uid);
}

int http_peer_check_tcp(const struct http_peer_tcp *t, struct err *e)
{
	struct peer_found listening = { .any = false }, accepted = { .any = false };
	struct peer_end own, to;

	if (!peer_end_of(t->own_ip, t->own_port, &own) || !peer_end_of(t->ip, t->port, &to) ||
	    !peer_is_here(&to))
		return err_set(e, ERR_DENIED, "the token of this machine's hub stays here");
	peer_look(&own, &to, true, &listening);
	peer_look(&own, &to, false, &accepted);
	if (accepted.has_stranger)
		return peer_denied(accepted.stranger, e);
	if (!accepted.accepted && listening.has_stranger)
		return peer_denied(listening.stranger, e);
	return accepted.accepted || (accepted.any && listening.any)
		     ? 0
		     : err_set(e, ERR_DENIED, "nobody can say which user answers there");
}

int http_peer_check_unix(int fd, struct err *e)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
		return err_sys(e, errno, "look at the connection");
	return peer_may(who.uid) ? 0 : peer_denied(who.uid, e);
}
