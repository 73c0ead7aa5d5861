#pragma once
/*
 * Who is at the other end of a connection on this machine. A port is anybody's who takes it while
 * its server is away, and so is the path of a socket in a folder of others: what is secret goes
 * only to programs of the same user, or root.
 */
#include "base/err.h"

/* The two ends of a connection, addresses as text. */
struct http_peer_tcp {
	const char *own_ip, *ip;
	unsigned own_port, port;
};

/* ERR_DENIED: the other end is another user's, or on another machine, or nobody can say whose it
 * is. fd: a connected socket. */
int http_peer_check_tcp(const struct http_peer_tcp *t, struct err *e) MUST_USE;
int http_peer_check_unix(int fd, struct err *e) MUST_USE;
