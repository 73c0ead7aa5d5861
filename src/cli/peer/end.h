/*
 * How `holt mcp WORD` can end. Include it with PEER_END defined; it has no include guard on
 * purpose. Each row has its line in man/holt-mcp-client.1.scd.
 *
 *	PEER_END(NAME, exit, name, remedy)
 *
 * An interrupted one ends with 128 and the signal's number.
 */
PEER_END(OK, 0, "ok", NULL)
PEER_END(USAGE, 2, "usage", NULL)
PEER_END(AUTHORIZATION, 3, "authorization",
	 "Log in at a terminal, or give a token with --token-file or --header; 'holt auth token' "
	 "prints the token of a hub.")
PEER_END(UNREACHABLE, 4, "unreachable",
	 "Check its command line or address; -v shows its program's messages.")
PEER_END(TOOL, 5, "tool_error", NULL)
PEER_END(PROTOCOL, 6, "protocol_error", NULL)
PEER_END(TIMEOUT, 124, "timeout", "Give it more time with --timeout.")
PEER_END(OWN, 125, "failed", NULL)
