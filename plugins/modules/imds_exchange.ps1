#!powershell

# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Requests one answer from IMDS, or the same one each second until it changes; imds_exchange.yml documents the
# options and the result. Runs in Windows PowerShell 3.0 and later, with the .NET Framework that is part of it.

#Requires -Module Ansible.ModuleUtils.Legacy

$params = Parse-Args $args -supports_check_mode $true

Function Deny-Option($name, $expected) {
    Fail-Json @{} "imds_exchange: option $name is not valid; set it to $expected"
}

Function Get-Number($name, $default, $least, $most) {
    $number = (Get-AnsibleParam -obj $params -name $name -default $default) -as [double]
    if (-not ($number -ge $least -and $number -le $most)) { Deny-Option $name "a number from $least to $most" }
    return $number
}

$uri = $null
$url = [string](Get-AnsibleParam -obj $params -name "url")
if (-not [Uri]::TryCreate($url, [UriKind]::Absolute, [ref]$uri) -or $uri.Scheme -ne "http") { Deny-Option "url" "an http URL" }
$method = [string](Get-AnsibleParam -obj $params -name "method" -default "GET")
if (@("GET", "POST") -cnotcontains $method) { Deny-Option "method" "GET or POST" }
if ($method -eq "POST" -and (Get-AnsibleParam -obj $params -name "_ansible_check_mode" -type "bool" -default $false)) {
    Exit-Json @{ skipped = $true; msg = "check mode: the request was not sent" }
}
$headers = Get-AnsibleParam -obj $params -name "headers" -default @{}
if ($headers -isnot [System.Collections.IDictionary]) { Deny-Option "headers" "a dictionary of names and values" }
try { $content = [Convert]::FromBase64String([string](Get-AnsibleParam -obj $params -name "body")) }
catch { Deny-Option "body" "a base64 string" }
$known_hash = [string](Get-AnsibleParam -obj $params -name "known_hash")
if ($known_hash -cnotmatch '\A([0-9a-f]{64})?\z') { Deny-Option "known_hash" "64 lower-case hexadecimal digits" }
$connect_timeout = Get-Number "connect_timeout" 3 0.001 3600
$timeout = Get-Number "timeout" 10 0.001 3600
$rest_timeout = Get-Number "rest_timeout" 10 0.001 3600
$max_bytes = Get-Number "max_bytes" 8388608 1 104857600
$repeat_for = Get-Number "repeat_for" 0 0 50

$clock = [System.Diagnostics.Stopwatch]::StartNew()
$state = @{ requests_sent = 0; connected = $false; answering = $false }
$reasons = @{
    ConnectionRefused = "refused"; ConnectFailure = "refused"; TimedOut = "timeout"; Timeout = "timeout"
    ConnectionReset = "reset"; ConnectionAborted = "reset"; ConnectionClosed = "reset"; KeepAliveFailure = "reset"
    ReceiveFailure = "reset"; SendFailure = "reset"; CutShort = "reset"
    ServerProtocolViolation = "protocol"; MessageLengthLimitExceeded = "protocol"; TooLong = "too_long"
}

Function Wait-Operation($operation, $deadline) {
    # at least 1 ms: WaitOne takes a negative number as no limit or as an error
    $left = [int][Math]::Max(1.0, 1000.0 * ($deadline - $clock.Elapsed.TotalSeconds))
    # a server that never pauses for so long must not outlast the limit either
    if (-not $operation.AsyncWaitHandle.WaitOne($left) -or $clock.Elapsed.TotalSeconds -ge $deadline) {
        throw (New-Object System.TimeoutException "the time limit has passed")
    }
}

Function Test-Endpoint($deadline) {
    # HttpWebRequest has no time limit for the connection alone, and does not report that it was set up
    $family = [System.Net.Sockets.AddressFamily]::InterNetwork
    if ($uri.HostNameType -eq [UriHostNameType]::IPv6) { $family = [System.Net.Sockets.AddressFamily]::InterNetworkV6 }
    $client = New-Object System.Net.Sockets.TcpClient $family
    try {
        $operation = $client.BeginConnect($uri.DnsSafeHost, $uri.Port, $null, $null)
        Wait-Operation $operation $deadline
        $client.EndConnect($operation)
    }
    finally { $client.Close() }
    $state.connected = $true
}

Function New-Request {
    $request = [System.Net.WebRequest]::Create($uri)
    $request.Method = $method
    $request.Proxy = $null
    $request.AllowAutoRedirect = $false
    $request.ServicePoint.Expect100Continue = $false
    # Wait-Operation limits all but the write of a short body
    $request.Timeout = [System.Threading.Timeout]::Infinite
    $request.ReadWriteTimeout = [int](1000 * $timeout)
    try {
        foreach ($name in $headers.Keys) {
            # .NET refuses to have these set by their names
            switch ($name) {
                "Accept" { $request.Accept = [string]$headers[$name] }
                "Content-Type" { $request.ContentType = [string]$headers[$name] }
                "User-Agent" { $request.UserAgent = [string]$headers[$name] }
                default { $request.Headers.Add([string]$name, [string]$headers[$name]) }
            }
        }
    }
    catch { Deny-Option "headers" "names and values that a client may set" }
    return $request
}

Function Read-Answer($request, $deadline) {
    if ($method -eq "POST") {
        $request.ContentLength = $content.Length
        $operation = $request.BeginGetRequestStream($null, $null)
        Wait-Operation $operation $deadline
        $stream = $request.EndGetRequestStream($operation)
        $stream.Write($content, 0, $content.Length)
        $stream.Close()
    }
    $operation = $request.BeginGetResponse($null, $null)
    Wait-Operation $operation $deadline
    try { $response = $request.EndGetResponse($operation) }
    catch {
        # .NET raises an error for the status 304 and for those from 400, with the answer in it
        $response = $null
        for ($cause = $_.Exception; $null -ne $cause; $cause = $cause.InnerException) {
            if ($cause -is [System.Net.WebException] -and $null -ne $cause.Response) { $response = $cause.Response }
        }
        if ($null -eq $response) { throw }
    }
    $state.answering = $true
    $deadline = [Math]::Min($deadline, $clock.Elapsed.TotalSeconds + $rest_timeout)
    $lines = New-Object System.Collections.ArrayList
    foreach ($name in $response.Headers.AllKeys) { [void]$lines.Add(@([string]$name, [string]$response.Headers.Get($name))) }
    $stream = $response.GetResponseStream()
    $body = New-Object System.IO.MemoryStream
    $buffer = New-Object byte[] 65536
    do {
        $operation = $stream.BeginRead($buffer, 0, $buffer.Length, $null, $null)
        Wait-Operation $operation $deadline
        $count = $stream.EndRead($operation)
        $body.Write($buffer, 0, $count)
    } while ($count -gt 0 -and $body.Length -le $max_bytes)
    if ($body.Length -gt $max_bytes) {
        throw (New-Object System.IO.InvalidDataException "the answer is longer than $max_bytes bytes")
    }
    # .NET may return the beginning of a body as if it were whole; of an error's body it keeps 64 kB
    $status = [int]$response.StatusCode
    if ($status -lt 300 -and $response.ContentLength -ge 0 -and $response.ContentLength -ne $body.Length) {
        throw (New-Object System.IO.EndOfStreamException "the answer was cut short after $($body.Length) bytes")
    }
    $answer = @{ status = $status; headers = $lines; body = [Convert]::ToBase64String($body.ToArray()) }
    # the next request can use the connection
    $response.Close()
    return $answer
}

Function Get-Answer {
    $begun = $clock.Elapsed.TotalSeconds
    $state.answering = $false
    if (-not $state.connected) { Test-Endpoint ($begun + [Math]::Min($connect_timeout, $timeout)) }
    $request = New-Request
    $state.requests_sent += 1
    try { return Read-Answer $request ($begun + $timeout) }
    catch { $request.Abort(); throw }
}

Function ConvertTo-Failure($exception) {
    $reason = "other"
    for ($cause = $exception; $null -ne $cause; $cause = $cause.InnerException) {
        $code = ""
        if ($cause -is [System.Net.Sockets.SocketException]) { $code = [string]$cause.SocketErrorCode }
        if ($cause -is [System.Net.WebException]) { $code = [string]$cause.Status }
        if ($cause -is [System.TimeoutException]) { $code = "Timeout" }
        if ($cause -is [System.IO.InvalidDataException]) { $code = "TooLong" }
        if ($cause -is [System.IO.EndOfStreamException]) { $code = "CutShort" }
        # the innermost one that is known decides
        if ($reasons.ContainsKey($code)) { $reason = $reasons[$code] }
        $message = $cause.Message
    }
    $kind = "unreachable"
    if ($state.answering -and $reason -ne "timeout") { $kind = "unreadable" }
    return @{ kind = $kind; connected = ($state.connected -and $reason -ne "refused"); reason = $reason; message = $message }
}

Function Test-Known($answer) {
    if ($answer.ContainsKey("failure") -or $answer.status -ne 200) { return $false }
    # in this form also where Windows permits only validated cryptography (FIPS)
    $sha256 = New-Object System.Security.Cryptography.SHA256CryptoServiceProvider
    $digest = $sha256.ComputeHash([Convert]::FromBase64String($answer.body))
    $hash = [BitConverter]::ToString($digest).Replace("-", "").ToLowerInvariant()
    return $hash -ceq $known_hash
}

$repeats = $method -eq "GET" -and $known_hash -ne ""
do {
    $next = $clock.Elapsed.TotalSeconds + 1
    try { $answer = Get-Answer }
    catch { $answer = @{ failure = ConvertTo-Failure $_.Exception } }
    $again = $repeats -and $next -lt $repeat_for -and (Test-Known $answer)
    if ($again) { Start-Sleep -Milliseconds ([int][Math]::Max(0.0, 1000.0 * ($next - $clock.Elapsed.TotalSeconds))) }
} while ($again)
$answer.requests_sent = $state.requests_sent
$answer.changed = $false
Exit-Json $answer
