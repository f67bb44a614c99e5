import { attacks } from './hostile.ts';
import { randomOf } from './random.ts';

// Every attack at once, in a separate process, until it is killed. Arguments: ports of ADS and of metrics, seed.
const [port = 0, monitoring = 0, seed = 0] = process.argv.slice(2).map(Number);
const target = { port, monitoring, random: randomOf(seed), signal: new AbortController().signal };
await Promise.all(Object.values(attacks).map((attack) => attack(target)));
