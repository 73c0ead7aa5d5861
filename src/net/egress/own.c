#include "net/egress/own.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/mem.h"

int own_open(struct err *e)
{
	const struct timeval soon = { .tv_sec = 1 }; /* the kernel answers within send() */
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)) < 0)
		return err_sys(e, errno, "ask the kernel for routes");
	return take_fd(&fd);
}

bool own_has(int own, const struct net_addr *a)
{
	static unsigned seq;
	const unsigned n = a->family == 4 ? 4 : 16;
	struct {
		struct nlmsghdr h;
		struct rtmsg m;
		struct rtattr attr;
		uint8_t to[16];
	} ask = {
		.h = { .nlmsg_len = (unsigned)(sizeof(ask) - 16 + n),
		       .nlmsg_type = RTM_GETROUTE,
		       .nlmsg_flags = NLM_F_REQUEST,
		       .nlmsg_seq = ++seq },
		.m = { .rtm_family = a->family == 4 ? AF_INET : AF_INET6,
		       .rtm_dst_len = (unsigned char)(8 * n) },
		.attr = { .rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(n) },
	};
	union {
		struct nlmsghdr h;
		char bytes[4096];
	} said;

	memcpy(ask.to, a->bytes, n);
	if (send(own, &ask, ask.h.nlmsg_len, 0) < 0)
		return true;
	for (;;) {
		ssize_t got = recv(own, &said, sizeof(said), 0);
		const struct rtmsg *m = NLMSG_DATA(&said.h);

		if (got < (ssize_t)NLMSG_LENGTH(sizeof(*m)))
			return true;
		if (said.h.nlmsg_seq != seq)
			continue;
		if (said.h.nlmsg_type == NLMSG_ERROR)
			return false; /* no way there: connect() says so */
		return said.h.nlmsg_type != RTM_NEWROUTE || m->rtm_type == RTN_LOCAL ||
		       m->rtm_type == RTN_BROADCAST || m->rtm_type == RTN_MULTICAST ||
		       m->rtm_type == RTN_ANYCAST;
	}
}
