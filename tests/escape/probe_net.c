/* Sockets: families that must not be had, places that must not be reached. */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define SOCKET(name, family, type, protocol)                                                       \
	static enum result name(struct found *f)                                                   \
	{                                                                                          \
		return tried_open(f, socket(family, (type) | SOCK_CLOEXEC, protocol));             \
	}

SOCKET(try_vsock, AF_VSOCK, SOCK_STREAM, 0)
SOCKET(try_packet, AF_PACKET, SOCK_RAW, 0)
SOCKET(try_nfnetlink, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)
SOCKET(try_uevent, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)
SOCKET(try_audit, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)
SOCKET(try_generic, AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)
SOCKET(try_xfrm, AF_NETLINK, SOCK_RAW, NETLINK_XFRM)
SOCKET(try_sock_diag, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)
SOCKET(try_alg, AF_ALG, SOCK_SEQPACKET, 0)
SOCKET(try_raw_icmp, AF_INET, SOCK_RAW, IPPROTO_ICMP)
SOCKET(try_raw_ip6, AF_INET6, SOCK_RAW, IPPROTO_RAW)
SOCKET(try_inet, AF_INET, SOCK_STREAM, 0)
SOCKET(try_unix, AF_UNIX, SOCK_STREAM, 0)
SOCKET(try_mptcp, AF_INET, SOCK_STREAM, IPPROTO_MPTCP)

/* Datagrams of UDP-Lite are what every kernel has; the others would be loaded. */
static enum result try_protocols(struct found *f)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	enum result r = DENIED;

	for (int protocol = 2; protocol < 300; protocol++) {
		if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP ||
		    protocol == IPPROTO_ICMPV6)
			continue;
		for (size_t i = 0; i < PROBE_LEN(types); i++) {
			r = tried(f, socket(AF_INET, types[i] | SOCK_CLOEXEC, protocol));
			if (r != DENIED)
				return r;
		}
	}
	return r;
}

/* Every family but unix, inet, inet6 and netlink. */
static enum result try_families(struct found *f)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW };
	enum result r = DENIED;

	for (int family = 3; family < 64; family++) {
		if (family == AF_INET6 || family == AF_NETLINK)
			continue;
		for (size_t i = 0; i < PROBE_LEN(types) && r != OPEN; i++)
			r = tried(f, socket(family, types[i] | SOCK_CLOEXEC, 0));
		if (r == OPEN) {
			tell(f, "family %d", family);
			return r;
		}
	}
	return r;
}

/* The same family with bits above the 32nd, which the kernel does not look at. */
static enum result try_vsock_high(struct found *f)
{
	return tried_open(f, (int)syscall(SYS_socket, 1ul << 32 | AF_VSOCK, SOCK_STREAM, 0));
}

/* ---- the network namespace's own settings ---------------------------------------------------- */

static enum result try_route_read(struct found *f)
{
	struct ifaddrs *all;
	int ret = getifaddrs(&all);

	for (struct ifaddrs *i = ret ? NULL : all; i; i = i->ifa_next) {
		if (strcmp(i->ifa_name, "lo") != 0)
			tell(f, "%s", i->ifa_name);
	}
	return tried(f, ret);
}

static enum result try_interfaces(struct found *f)
{
	struct if_nameindex *all = if_nameindex();
	enum result r = DENIED;

	for (struct if_nameindex *i = all; i && i->if_name; i++) {
		if (strcmp(i->if_name, "lo") != 0) {
			tell(f, "%s", i->if_name);
			r = OPEN;
		}
	}
	return r;
}

/* Asks for a new interface of the given kind; the answer is an error or an acknowledgement. */
static enum result try_new_link(struct found *f)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
		struct rtattr name;
		char text[8];
		struct rtattr info, kind;
		char kind_text[8];
	} m = {
		.h = { sizeof(m), RTM_NEWLINK,
		       NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, 1, 0 },
		.name = { sizeof(struct rtattr) + 8, IFLA_IFNAME },
		.text = "holt0",
		.info = { 2 * sizeof(struct rtattr) + 8, IFLA_LINKINFO },
		.kind = { sizeof(struct rtattr) + 7, 1 /* IFLA_INFO_KIND */ },
		.kind_text = "bridge",
	};
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
	} answer = { 0 };

	if (s < 0 || send(s, &m, sizeof(m), 0) < 0 || recv(s, &answer, sizeof(answer), 0) < 0)
		return tried(f, -1);
	errno = -answer.e.error;
	return tried(f, errno ? -1 : 0);
}

static enum result try_address(struct found *f)
{
	struct ifreq r = { .ifr_name = "lo" };
	struct sockaddr_in *a = (struct sockaddr_in *)(void *)&r.ifr_addr;

	a->sin_family = AF_INET;
	a->sin_addr.s_addr = inet_addr("127.0.0.1");
	return tried(f, ioctl(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), SIOCSIFADDR, &r));
}

/* A table of the packet filter. */
static enum result try_iptables(struct found *f)
{
	char replace[512] = "filter";
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	enum result r = tried(f, setsockopt(s, IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, replace,
					    sizeof(replace)));

	return f->errnum == EPERM ? r : OPEN; /* past the check of rights */
}

/* ---- places ---------------------------------------------------------------------------------- */

/* connect() of a datagram socket sends nothing: it asks for a way. */
static enum result way_to(struct found *f, const char *address, unsigned short port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 b = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool six = strchr(address, ':');
	int s = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, address, &a.sin_addr);
	inet_pton(AF_INET6, address, &b.sin6_addr);
	return tried(f,
		     six ? connect(s, (void *)&b, sizeof(b)) : connect(s, (void *)&a, sizeof(a)));
}

static enum result try_ipv4(struct found *f)
{
	return way_to(f, "203.0.113.1", 443);
}

static enum result try_ipv6(struct found *f)
{
	return way_to(f, told("HOLT_PROBE_IPV6", "2001:db8::1"), 443);
}

static enum result try_mapped(struct found *f)
{
	return way_to(f, "::ffff:203.0.113.1", 443);
}

static enum result try_metadata(struct found *f)
{
	return way_to(f, "169.254.169.254", 80);
}

static enum result try_dns(struct found *f)
{
	return way_to(f, "8.8.8.8", 53);
}

static enum result dial(struct found *f, const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons((unsigned short)atoi(told("HOLT_PROBE_PORT", "1")));
	inet_pton(AF_INET, address, &a.sin_addr);
	return tried(f, connect(s, (void *)&a, sizeof(a)));
}

static enum result try_host_loopback(struct found *f)
{
	return dial(f, "127.0.0.1");
}

static enum result try_host_address(struct found *f)
{
	return dial(f, told("HOLT_PROBE_ADDRESS", "192.0.2.1"));
}

static enum result dial_unix(struct found *f, const char *name, bool abstract)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = strlen(name);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path + abstract, name, n < 100 ? n : 100);
	return tried(f,
		     connect(s, (void *)&a,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + abstract)));
}

static enum result try_abstract(struct found *f)
{
	return dial_unix(f, told("HOLT_PROBE_ABSTRACT", "holt-none"), true);
}

static enum result try_unix_paths(struct found *f)
{
	const char *const paths[] = { told("HOLT_PROBE_SOCKET", "/none"),
				      "/run/docker.sock",
				      "/var/run/docker.sock",
				      "/run/containerd/containerd.sock",
				      "/run/podman/podman.sock",
				      "/run/crio/crio.sock",
				      "/run/dbus/system_bus_socket",
				      "/run/systemd/private",
				      "/run/systemd/journal/socket",
				      "/tmp/.X11-unix/X0",
				      "/dev/log" };
	enum result r;

	for (size_t i = 0; i < PROBE_LEN(paths); i++) {
		r = dial_unix(f, paths[i], false);
		if (r == OPEN) {
			tell(f, "%.100s", paths[i]);
			return r;
		}
	}
	return f->errnum == ENOENT ? ABSENT : DENIED;
}

static const struct attempt rows[] = {
	{ "net_vsock", "a socket to the hypervisor (AF_VSOCK)", "seccomp", try_vsock, PLAIN },
	{ "net_vsock_high", "AF_VSOCK with a bit set above the 32nd", "seccomp", try_vsock_high,
	  PLAIN },
	{ "net_packet", "a packet socket (AF_PACKET)", "seccomp, no capability", try_packet, JAIL },
	{ "net_nfnetlink", "netlink: the packet filter", "seccomp", try_nfnetlink, PLAIN },
	{ "net_uevent", "netlink: the kernel's events", "seccomp", try_uevent, PLAIN },
	{ "net_audit", "netlink: audit", "seccomp", try_audit, PLAIN },
	{ "net_generic", "netlink: generic", "seccomp", try_generic, PLAIN },
	{ "net_xfrm", "netlink: xfrm", "seccomp", try_xfrm, PLAIN },
	{ "net_sock_diag", "netlink: sock_diag", "seccomp", try_sock_diag, PLAIN },
	{ "net_alg", "a socket of the kernel's cryptography (AF_ALG)", "seccomp", try_alg, PLAIN },
	{ "net_families", "any family but unix, inet and netlink", "seccomp", try_families, PLAIN },
	{ "net_raw_icmp", "a raw socket", "no capability", try_raw_icmp, JAIL },
	{ "net_raw_ip6", "a raw socket of IPv6", "seccomp, no capability", try_raw_ip6, JAIL },
	{ "net_mptcp", "a socket of multipath TCP", "seccomp", try_mptcp, PLAIN },
	{ "net_protocols", "any protocol of inet but TCP, UDP and ICMP", "seccomp", try_protocols,
	  PLAIN },
	{ "net_new_link", "make a network interface", "no capability", try_new_link, JAIL, true },
	{ "net_set_address", "change the address of the loopback interface", "no capability",
	  try_address, JAIL, true },
	{ "net_iptables", "replace a table of the packet filter", "no capability", try_iptables,
	  JAIL, true },
	{ "net_interfaces", "have an interface other than the loopback", "network namespace",
	  try_interfaces, PLAIN },
	{ "net_ipv4", "a way to an IPv4 address", "network namespace", try_ipv4, PLAIN },
	{ "net_ipv6", "a way to an IPv6 address", "network namespace", try_ipv6, PLAIN },
	{ "net_mapped", "a way to an IPv4 address in IPv6's clothes", "network namespace",
	  try_mapped, PLAIN },
	{ "net_metadata", "a way to 169.254.169.254", "network namespace", try_metadata, PLAIN },
	{ "net_dns", "a way to a name server", "network namespace", try_dns, PLAIN },
	{ "net_host_loopback", "a service on the host's 127.0.0.1", "network namespace",
	  try_host_loopback, PLAIN },
	{ "net_host_address", "a service on the host's own address", "network namespace",
	  try_host_address, PLAIN },
	{ "net_abstract", "an abstract unix socket of the host", "network namespace, Landlock",
	  try_abstract, PLAIN },
	{ "net_unix_paths", "a unix socket of the host: docker, D-Bus, X11, our own",
	  "mount namespace", try_unix_paths, PLAIN },
	{ "net_inet", "an internet socket", "its network namespace has a loopback and nothing else",
	  try_inet, PLAIN, .policy = true },
	{ "net_route_read", "netlink: read the interfaces and routes",
	  "its network namespace has a loopback and nothing else", try_route_read, PLAIN,
	  .policy = true },
	{ "net_unix", "a unix socket", "names and abstract names of its own namespaces only",
	  try_unix, PLAIN, .policy = true },
};

const struct attempts net_attempts = { "Network", rows, PROBE_LEN(rows) };
