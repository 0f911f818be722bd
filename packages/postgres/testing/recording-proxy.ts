import { type DatabaseProxy, startDatabaseProxy } from './database-proxy.ts';

/** Starts a proxy that records the text of every statement that a client sends (PostgreSQL manual, 55.7: Parse and Query). */
export async function startRecordingProxy(databaseUrl: string): Promise<DatabaseProxy & { readonly texts: string[] }> {
  const texts: string[] = [];
  const proxy = await startDatabaseProxy(databaseUrl, (client, database) => {
    let bytes = Buffer.alloc(0);
    // The first message has no type.
    let typeBytes = 0;
    client.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= typeBytes + 4) {
        const length = typeBytes + bytes.readUInt32BE(typeBytes);
        if (bytes.length < length) break;
        const [type, body] = [typeBytes === 1 ? String.fromCharCode(bytes[0] ?? 0) : '', bytes.subarray(5, length)];
        // Parse begins with the statement's name.
        const strings = body.toString().split('\0');
        const text = type === 'Q' ? strings[0] : type === 'P' ? strings[1] : undefined;
        if (text !== undefined) texts.push(text);
        bytes = bytes.subarray(length);
        typeBytes = 1;
      }
    });
    client.pipe(database).pipe(client);
  });
  return { ...proxy, texts };
}
