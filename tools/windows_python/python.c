// SPDX-License-Identifier: GPL-3.0-or-later
// Copyright: Contributors to the azure_imds.scheduled_events collection

// python.exe of the Windows Python
#include <wchar.h>

int Py_Main(int argc, wchar_t **argv);

int wmain(int argc, wchar_t **argv)
{
    return Py_Main(argc, argv);
}
