// Adds up the test runner's own JSON reports, one a workspace, into the line `N passed, N failed`. Plain JavaScript, because it
// runs on whatever Node.js the machine has, also where the installation itself failed.
import { existsSync, readdirSync, readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
for (const group of ['packages', 'apps']) {
  for (const name of readdirSync(group)) {
    const path = `${group}/${name}/.reports/vitest.json`;
    if (!existsSync(path)) continue;
    const report = JSON.parse(readFileSync(path, 'utf8'));
    passed += report.numPassedTests;
    failed += report.numFailedTests;
    // A file that broke before its first test counts as one failure.
    failed += report.testResults.filter(
      (file) => file.status === 'failed' && file.assertionResults.length === 0,
    ).length;
  }
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
