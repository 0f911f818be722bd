import 'reflect-metadata';
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Injectable,
  Module,
  Post,
  UseGuards,
  ValidationPipe,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { GrpcMethod, type MicroserviceOptions, Payload, Transport } from '@nestjs/microservices';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import {
  IsEmail,
  IsIn,
  IsNumber,
  IsOptional,
  IsPositive,
  IsString,
  IsUrl,
  Length,
  Matches,
  MaxLength,
} from 'class-validator';
import { Column, Entity, PrimaryColumn, type Repository } from 'typeorm';
import { answerOf, knows, newOrder, ready } from './new-order.js';

// NestJS with TypeORM, class-validator and a guard, as its own manual puts them together. GRPC=1: as a gRPC microservice.

@Entity({ name: 'orders' })
class OrderEntity {
  @PrimaryColumn({ name: 'merchant_id', type: 'bigint' }) merchantId!: number;
  @Column({ name: 'service_order_id', type: 'bigint' }) serviceOrderId!: number;
  @Column({ name: 'order_token', type: 'text' }) orderToken!: string;
  @Column({ name: 'order_status', type: 'text' }) orderStatus!: string;
  @Column({ name: 'created_at', type: 'timestamptz' }) createdAt!: Date;
  @PrimaryColumn({ type: 'text' }) order_id!: string;
  @Column({ type: 'numeric', precision: 15, scale: 2 }) order_amount!: string;
  @Column({ type: 'text' }) order_currency!: string;
  @Column({ type: 'text' }) order_note!: string;
  @Column({ type: 'text' }) service_type!: string;
  @Column({ type: 'text' }) customer_name!: string;
  @Column({ type: 'text' }) customer_email!: string;
  @Column({ type: 'text' }) customer_phone!: string;
  @Column({ type: 'text' }) customer_address_line1!: string;
  @Column({ type: 'text' }) customer_address_line2!: string;
  @Column({ type: 'text' }) customer_address_city!: string;
  @Column({ type: 'text' }) customer_address_state!: string;
  @Column({ type: 'text' }) customer_address_country!: string;
  @Column({ type: 'text' }) customer_address_postal_code!: string;
  @Column({ type: 'text' }) order_checksum!: string;
  @Column({ type: 'text' }) return_url!: string;
}

class CreateOrderDto {
  @IsString() @Length(1, 128) order_id!: string;
  @IsNumber({ maxDecimalPlaces: 2 }) @IsPositive() order_amount!: number;
  @Matches(/^[A-Z]{3}$/) order_currency!: string;
  @IsString() @Length(1, 1_000) order_note!: string;
  @IsIn(['DIGITAL', 'PHYSICAL_GOODS']) service_type!: string;
  @IsString() @Length(1, 255) customer_name!: string;
  @IsEmail() customer_email!: string;
  @IsString() @Length(4, 32) customer_phone!: string;
  @IsString() @Length(1, 255) customer_address_line1!: string;
  @IsOptional() @IsString() @MaxLength(255) customer_address_line2?: string;
  @IsString() @Length(1, 100) customer_address_city!: string;
  @IsString() @Length(1, 100) customer_address_state!: string;
  @IsString() @Length(1, 100) customer_address_country!: string;
  @IsString() @Length(1, 20) customer_address_postal_code!: string;
  @IsString() @Length(1, 256) order_checksum!: string;
  @IsUrl({ require_tld: false }) return_url!: string;
}

@Injectable()
class OrdersService {
  private readonly orders: Repository<OrderEntity>;

  constructor(@InjectRepository(OrderEntity) orders: Repository<OrderEntity>) {
    this.orders = orders;
  }

  async create(dto: CreateOrderDto) {
    const order = newOrder();
    await this.orders.insert({
      ...order,
      ...dto,
      order_amount: dto.order_amount.toFixed(2),
      customer_address_line2: dto.customer_address_line2 ?? '',
    });
    return answerOf(order, dto.order_id);
  }
}

@Injectable()
class CredentialsGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (context.getType() === 'http') {
      const { headers } = context.switchToHttp().getRequest();
      return knows(headers['x-client-id'], headers['x-client-secret']);
    }
    const metadata = context.switchToRpc().getContext().getMap();
    return knows(metadata['x-client-id'], metadata['x-client-secret']);
  }
}

@Controller()
@UseGuards(CredentialsGuard)
class OrdersController {
  private readonly orders: OrdersService;

  constructor(orders: OrdersService) {
    this.orders = orders;
  }

  @Post('order')
  create(@Body() dto: CreateOrderDto) {
    return this.orders.create(dto);
  }

  @GrpcMethod('OrderService', 'CreateOrder')
  createOrder(@Payload() dto: CreateOrderDto) {
    return this.orders.create(dto);
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({
      ...{ type: 'postgres', url: process.env.DATABASE_URL ?? '', entities: [OrderEntity] },
      ...{ synchronize: false, poolSize: 10 },
    }),
    TypeOrmModule.forFeature([OrderEntity]),
  ],
  controllers: [OrdersController],
  providers: [OrdersService],
})
class AppModule {}

const pipe = new ValidationPipe({ transform: true, whitelist: true });

if (process.env.GRPC === '1') {
  const port = Number(process.env.PORT);
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule, {
    logger: ['error'],
    transport: Transport.GRPC,
    options: {
      url: `127.0.0.1:${port}`,
      package: 'gateway.v1',
      protoPath: 'gateway/v1/order_service.proto',
      loader: { includeDirs: [process.env.PROTO_DIR ?? ''], keepCase: true, longs: Number, enums: String },
    },
  });
  app.useGlobalPipes(pipe);
  await app.listen();
  ready(port);
} else {
  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  app.useGlobalPipes(pipe);
  const server = await app.listen(0, '127.0.0.1');
  ready(server.address().port);
}
