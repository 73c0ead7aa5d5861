-- tools/call echo over keep-alive connections, each request with an id of its own.
-- wrk -s load.lua URL -- ERA SESSION-ID
local n, era = 0, 'legacy'
local call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}%s}}'
local claim = ''

function init(args)
	era = args[1]
	wrk.method = 'POST'
	wrk.headers['Content-Type'] = 'application/json'
	wrk.headers['Accept'] = 'application/json, text/event-stream'
	if era == 'modern' then
		wrk.headers['MCP-Protocol-Version'] = '2026-07-28'
		wrk.headers['Mcp-Method'] = 'tools/call'
		wrk.headers['Mcp-Name'] = 'echo'
		claim = ',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
			.. '"io.modelcontextprotocol/clientCapabilities":{}}'
	else
		wrk.headers['MCP-Protocol-Version'] = '2025-11-25'
		wrk.headers['Mcp-Session-Id'] = args[2]
	end
end

function request()
	n = n + 1
	return wrk.format(nil, nil, nil, string.format(call, n, claim))
end

function done(summary, latency, requests)
	io.write(string.format('RESULT %d %d %d %d %d\n', summary.requests, summary.duration,
		summary.errors.status + summary.errors.read + summary.errors.timeout + summary.errors.connect,
		latency:percentile(50), latency:percentile(99)))
end
