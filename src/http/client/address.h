#pragma once
/*
 * Classifies IP addresses by IANA's special-purpose registries (RFC 6890). A URL from an untrusted
 * source must lead to the public Internet only, since otherwise it could use this process to attack
 * the local network. Pure.
 */
#include <stdbool.h>
#include <sys/socket.h>

/*
 * True for a unicast address of the public Internet. All others are not public: private, loopback,
 * link-local, unique local, shared (carrier-grade NAT), multicast, documentation, benchmark and
 * reserved addresses; addresses that contain another one, since that may be any of these (6to4,
 * Teredo, NAT64, ISATAP, IPv4-mapped, IPv4-compatible); the metadata services of clouds; and any
 * family but AF_INET and AF_INET6.
 */
bool http_address_public(const struct sockaddr *a);

/* True for 127.0.0.0/8 and ::1, but not for addresses that contain one of them. */
bool http_address_loopback(const struct sockaddr *a);
