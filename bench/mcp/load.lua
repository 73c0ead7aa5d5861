-- tools/call echo over keep-alive connections. The requests are made beforehand, so that the load takes as little as it can
-- of the CPUs that it shares with the server; an id comes again after REQUESTS others.
-- wrk -s load.lua URL -- ERA SESSION-ID
local REQUESTS = 10000
local requests, n = {}, 0
local call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}%s}}'
local claim = ''

function init(args)
	local era = args[1]
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
	for id = 1, REQUESTS do
		requests[id] = wrk.format(nil, nil, nil, string.format(call, id, claim))
	end
end

function request()
	n = n % REQUESTS + 1
	return requests[n]
end

function done(summary, latency, requests)
	io.write(string.format('RESULT %d %d %d %d %d\n', summary.requests, summary.duration,
		summary.errors.status + summary.errors.read + summary.errors.timeout + summary.errors.connect,
		latency:percentile(50), latency:percentile(99)))
end
