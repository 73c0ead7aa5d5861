#pragma once
/*
 * What an IP address is for, by the special-purpose registries of IANA (RFC 6890): a URL that came
 * from outside must lead to no other place than the public Internet, or it makes us a tool against
 * the network that we stand in. Pure.
 */
#include <stdbool.h>
#include <sys/socket.h>

/*
 * True for a unicast address of the public Internet. Everything else is none: private, loopback,
 * link-local, unique local, shared (carrier-grade NAT), multicast, documentation, benchmarks,
 * reserved; what carries another address in it, since that one may be any of these (6to4, Teredo,
 * NAT64, ISATAP, IPv4-mapped, IPv4-compatible); the addresses at which clouds keep a machine's
 * metadata; and any family but AF_INET and AF_INET6.
 */
bool http_address_public(const struct sockaddr *a);

/* 127.0.0.0/8 and ::1, but no address that carries one of them. */
bool http_address_loopback(const struct sockaddr *a);
