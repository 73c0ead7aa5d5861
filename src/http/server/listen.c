/* Sockets to listen on. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "http/server/internal.h"

enum {
	BACKLOG = 511,
	/* A client that vanishes is noticed two minutes after its last word. */
	KEEPALIVE_S = 60,
	KEEPALIVE_EACH_S = 15,
	KEEPALIVE_TIMES = 4,
};

/* ---- TCP ----------------------------------------------------------------------------------- */

/* host:port, or [host]:port. */
static int listen_split(const char *address, char host[256], char port[8], struct err *e)
{
	const char *colon = strrchr(address, ':');
	size_t n = colon ? (size_t)(colon - address) : 0;

	if (n > 2 && address[0] == '[' && address[n - 1] == ']') {
		address++;
		n -= 2;
	} else if (n > 0 && memchr(address, ':', n)) {
		n = 0; /* IPv6 without brackets */
	}
	if (n == 0 || n > 255 || !colon[1] || strlen(colon + 1) > 5 ||
	    strspn(colon + 1, "0123456789") != strlen(colon + 1) || atoi(colon + 1) > 65535)
		return err_set(e, ERR_INVALID,
			       "an address is ADDRESS:PORT, such as 127.0.0.1:5757 or [::1]:5757, "
			       "not '%.80s'",
			       address);
	snprintf(host, 256, "%.*s", (int)n, address);
	snprintf(port, 8, "%s", colon + 1);
	return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >>
			       24 ==
		       127;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static int resolve(const char *address, struct sockaddr_storage *ret, socklen_t *ret_n,
		   struct err *e)
{
	struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	char host[256], port[8];
	int failed;

	if (listen_split(address, host, port, e) < 0)
		return -1;
	failed = getaddrinfo(host, port, &want, &found);
	if (failed)
		return err_set(e, ERR_INVALID, "the address '%.80s' is not known: %s", address,
			       gai_strerror(failed));
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	*ret_n = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* Connections have it from the socket that listens. It alone shows that a client is gone while
 * nothing is sent and nothing is read: a stream that waits for news, a WebSocket that is held and
 * whose end stands behind what was not read. */
static void keep_alive(int fd)
{
	static const struct {
		int level, name, value;
	} rows[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EACH_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TIMES },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		(void)setsockopt(fd, rows[i].level, rows[i].name, &rows[i].value,
				 sizeof(rows[i].value));
}

static int open_tcp(const char *address, const struct sockaddr *a, socklen_t n, struct err *e)
{
	autoclose int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return err_sys(e, errno, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	keep_alive(fd);
	if (bind(fd, a, n) < 0 || listen(fd, BACKLOG) < 0) {
		if (errno == EADDRINUSE)
			return err_set(e, ERR_CONFLICT, "%.80s is in use already", address);
		return err_sys(e, errno, "listen on %.80s", address);
	}
	return take_fd(&fd);
}

/* Reads the bound port. The address becomes an allowed host. */
static int name_bound(struct http_server *srv, int fd)
{
	struct sockaddr_storage a = { 0 };
	const struct sockaddr_in *in = (const void *)&a;
	const struct sockaddr_in6 *in6 = (const void *)&a;
	char *host = srv->bound[srv->n_listeners], text[INET6_ADDRSTRLEN] = "";
	socklen_t n = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return 0;
	if (a.ss_family == AF_INET && in->sin_addr.s_addr != INADDR_ANY)
		snprintf(host, sizeof(srv->bound[0]), "%s",
			 inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)));
	else if (a.ss_family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		snprintf(host, sizeof(srv->bound[0]), "[%s]",
			 inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text)));
	if (host[0] && srv->n_hosts < HOSTS_MAX)
		srv->hosts[srv->n_hosts++] = (struct http_authority){ str_of(host), -1 };
	return ntohs(a.ss_family == AF_INET ? in->sin_port : in6->sin6_port);
}

static void warn_of_plain(const char *where, const struct sockaddr *a, const struct http_tls *tls)
{
	if (!tls && a->sa_family != AF_UNIX && !is_loopback(a))
		log_warn("%.80s is no loopback address and speaks plain HTTP: whoever is on the "
			 "way reads tokens and data, or changes them; give it a certificate "
			 "(TLS), or listen on 127.0.0.1 behind something that has one",
			 where);
}

int http_server_listen(struct http_server *srv, const char *address, const struct http_tls *tls,
		       struct err *e)
{
	autofree struct listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage a;
	autoclose int fd = -1;
	socklen_t n = 0;

	if (!l)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (srv->n_listeners == LISTENERS_MAX)
		return err_set(e, ERR_LIMIT, "at most %d addresses", LISTENERS_MAX);
	if (resolve(address, &a, &n, e) < 0)
		return -1;
	if (!srv->o.identify && !is_loopback((struct sockaddr *)&a))
		return err_set(
			e, ERR_DENIED,
			"%.80s is no loopback address, and nobody would be asked for a token",
			address);
	fd = open_tcp(address, (struct sockaddr *)&a, n, e);
	if (fd < 0)
		return -1;
	l->port = name_bound(srv, fd);
	if (server_add(srv, &fd, l, tls, e) < 0)
		return -1;
	warn_of_plain(address, (struct sockaddr *)&a, tls);
	return take_ptr(l)->port;
}

/* ---- Unix ---------------------------------------------------------------------------------- */

/* Removes a socket that nobody listens on; leaves everything else alone. */
static int clear_path(const struct sockaddr_un *a, struct err *e)
{
	struct stat st;
	autoclose int fd = -1;

	if (lstat(a->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_CONFLICT, "where the socket should be, there is a file");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, errno, "socket");
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno != ECONNREFUSED)
		return err_set(e, ERR_CONFLICT, "another server listens on the socket");
	if (unlink(a->sun_path) < 0)
		return err_sys(e, errno, "remove the old socket");
	return 0;
}

int http_server_listen_unix(struct http_server *srv, const char *path, struct err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	autofree struct listener *l = calloc(1, sizeof(*l));
	autoclose int fd = -1;
	struct stat st;

	if (!l)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (strlen(path) >= sizeof(a.sun_path) || !*path)
		return err_set(e, ERR_INVALID, "the path of a socket has 1 to %zu characters",
			       sizeof(a.sun_path) - 1);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (clear_path(&a, e) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, errno, "socket");
	/* on Linux, bind() gives the file the descriptor's mode */
	if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen on the socket");
	snprintf(l->path, sizeof(l->path), "%s", path);
	if (lstat(path, &st) == 0)
		l->inode = st.st_ino;
	if (server_add(srv, &fd, l, NULL, e) < 0) {
		unlink(path);
		return -1;
	}
	take_ptr(l);
	return 0;
}

/* ---- what somebody else has opened --------------------------------------------------------- */

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &n) < 0 ? -1 : value;
}

static int check_given(struct http_server *srv, int fd, struct sockaddr_storage *ret, struct err *e)
{
	socklen_t n = sizeof(*ret);

	if (srv->n_listeners == LISTENERS_MAX)
		return err_set(e, ERR_LIMIT, "at most %d addresses", LISTENERS_MAX);
	if (option_of(fd, SO_ACCEPTCONN) != 1 || option_of(fd, SO_TYPE) != SOCK_STREAM ||
	    getsockname(fd, (struct sockaddr *)ret, &n) < 0 ||
	    (ret->ss_family != AF_UNIX && ret->ss_family != AF_INET && ret->ss_family != AF_INET6))
		return err_set(e, ERR_INVALID,
			       "descriptor %d is no stream socket that listens (ListenStream=)",
			       fd);
	if (ret->ss_family != AF_UNIX && !srv->o.identify && !is_loopback((struct sockaddr *)ret))
		return err_set(e, ERR_DENIED,
			       "descriptor %d listens on no loopback address, and nobody would be "
			       "asked for a token",
			       fd);
	return 0;
}

int http_server_listen_fd(struct http_server *srv, int *fd, const struct http_tls *tls,
			  struct err *e)
{
	autofree struct listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage a = { 0 };
	char name[32];

	if (!l)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (check_given(srv, *fd, &a, e) < 0)
		return -1;
	if (fcntl(*fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, errno, "listen on descriptor %d", *fd);
	l->given = true;
	if (a.ss_family == AF_UNIX) {
		const struct sockaddr_un *un = (const void *)&a;

		tls = NULL;
		snprintf(l->path, sizeof(l->path), "%.107s", *un->sun_path ? un->sun_path : "@");
	} else {
		l->port = name_bound(srv, *fd);
		keep_alive(*fd);
	}
	snprintf(name, sizeof(name), "descriptor %d", *fd);
	if (server_add(srv, fd, l, tls, e) < 0)
		return -1;
	warn_of_plain(name, (struct sockaddr *)&a, tls);
	return take_ptr(l)->port;
}
