// SPDX-License-Identifier: GPL-3.0-or-later
// Copyright: Contributors to the azure_imds.scheduled_events collection

// bcryptprimitives.dll, which Wine 8 lacks: wheels written in Rust take random bytes from it
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
    return RtlGenRandom(data, (ULONG)size);
}
