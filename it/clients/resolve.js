// Prints the addresses of a name, one a line, as c-ares finds them.
const { promises } = require('dns');

(async () => {
  const absent = (error) => {
    if (error.code !== 'ENODATA') throw error;
    return [];
  };
  const name = process.argv[2];
  const [v4, v6] = await Promise.all([
    promises.resolve4(name).catch(absent),
    promises.resolve6(name).catch(absent),
  ]);
  console.log([...v4, ...v6].join('\n'));
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
