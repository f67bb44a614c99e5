import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { NAMESPACE } from '../chart/chart.ts';
import { seed } from '../harness/seed.ts';
import { poll } from '../peers/process.ts';
import { printLogOnFailure, withPeers } from '../peers/with-peers.ts';
import { randomOf } from '../soak/random.ts';
import { Lab, type Member } from './lab.ts';
import { PEERS } from './run.ts';
import { NAMESPACE as SHOP } from './shop.ts';

const CHANGES = 10;

withPeers(PEERS, `replicas that die, sleep, come and go under load (FAIRLEAD_SEED=${seed})`, () => {
  let lab: Lab;
  printLogOnFailure(() => lab);

  beforeAll(async () => {
    lab = await Lab.start({ services: 2, random: randomOf(seed), environment: { FAIRLEAD_LEASE_DURATION: '3s' } });
  });
  afterAll(() => lab?.stop());
  afterEach(() => {
    expect(lab.load.failures, lab.load.failures.join('\n')).toEqual([]);
    expect(lab.usurpations(), lab.usurpations().join('\n')).toEqual([]);
  });

  const change = async (): Promise<void> => {
    for (let i = 0; i < CHANGES; i++) await lab.shop.change();
  };
  /** Nobody leads, so the cluster keeps no former generations, which a replica that starts now would have to know. */
  const changeWithoutLeader = async (): Promise<void> => {
    await change();
    await lab.shop.mend();
  };
  const leader = (): Promise<Member> => poll('a leader', () => lab.leader());
  const theOther = (than: Member): Member =>
    lab.members.find((member) => member !== than) ?? expect.fail('it is alone');
  const signal = ({ process: { pid } }: Member, name: NodeJS.Signals): void => void process.kill(pid, name);

  test('the leader is killed: proxies get changes from the other one, which writes conditions once the Lease has run out', async () => {
    const first = await leader();
    const other = theOther(first);
    await lab.end(first, 'SIGKILL');
    await changeWithoutLeader();
    await lab.served();
    await poll('the other one leads', async () => ((await lab.leader()) === other ? true : undefined));
    await (await lab.startMember(first.pod)).ready();
    lab.use(...lab.members);
    await lab.settled();
  }, 240_000);

  test('both sleep until the Lease has run out: who was the leader writes nothing when it wakes up later', async () => {
    const first = await leader();
    const other = theOther(first);
    for (const member of lab.members) signal(member, 'SIGSTOP');
    await change();
    await poll('the Lease has run out', async () => ((await lab.leaseHasRunOut()) ? true : undefined));
    signal(other, 'SIGCONT');
    await poll('the other one leads', async () => ((await lab.leader()) === other ? true : undefined));
    await change();
    signal(first, 'SIGCONT');
    await lab.settled();
    expect(await lab.leader()).toBe(other);
  }, 240_000);

  test('a stranger takes the Lease: nobody writes conditions until it is given up', async () => {
    // Who is robbed writes on until it looks at the Lease again; once proxies have had time to reconnect, there is nothing
    // left to write.
    await lab.api.kubectl('-n', SHOP, 'wait', '--for=condition=Programmed', 'sidecar/default', '--timeout=60s');
    await lab.writeLease({ holderIdentity: 'stranger', renewTime: microTime(), leaseDurationSeconds: 3_600 });
    for (const member of lab.members)
      await poll('it does not lead', async () => ((await member.metric('fairlead_leader')) === 0 ? true : undefined));
    const writes = (): number => lab.members.reduce((sum, { way }) => sum + way.statusWrites.length, 0);
    const before = writes();
    await changeWithoutLeader();
    await lab.served();
    expect(await lab.shop.wrongConditions()).not.toEqual([]);
    expect(writes()).toBe(before);
    await lab.writeLease({ holderIdentity: '' });
    await lab.settled();
    expect(writes()).toBeGreaterThan(before);
  }, 240_000);

  test('a replica is added, and one is removed', async () => {
    const scale = (replicas: number): Promise<string> =>
      lab.api.kubectl('-n', NAMESPACE, 'scale', 'deployment/fairlead', `--replicas=${replicas}`);
    const podsOnce = (count: number): Promise<string[]> =>
      poll(`${count} Pods`, async () => {
        const pods = await lab.pods();
        return pods.length === count ? pods : undefined;
      });
    await scale(3);
    const added = (await podsOnce(3)).find((pod) => lab.members.every((member) => member.pod !== pod))!;
    await change();
    await (await lab.startMember(added)).ready();
    await change();
    await lab.settled();

    await scale(2);
    const left = await podsOnce(2);
    const removed = lab.members.find(({ pod }) => !left.includes(pod))!;
    lab.use(...lab.members.filter((member) => member !== removed));
    const ended = lab.end(removed, 'SIGTERM');
    await change();
    expect(await ended).toBe(0);
    await change();
    await lab.settled();
  }, 240_000);
});

/** As Leases have it. */
const microTime = (): string => new Date().toISOString().replace('Z', '000Z');
