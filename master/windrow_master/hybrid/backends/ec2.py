"""Buys machines of Amazon EC2, on demand and spot, in one region: the adapter of boto3.

boto3 comes with the extra `aws` and is imported at the first call. Prices on demand are the price book's, spot prices
Amazon's own of this moment. Amazon makes one machine for a purchase, whose id is its client token.
"""

import asyncio
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any, Final, TypeVar

from windrow_master.hybrid.backends.port import (
    TAG_EPOCH,
    TAG_MARKET,
    TAG_PURCHASE,
    USER_DATA_MAX,
    Billing,
    Doubtful,
    Finding,
    Leftover,
    Machine,
    MachineOffer,
    MachineState,
    Order,
    PurchaseId,
    Refused,
    RefusedFor,
    Wanted,
    in_order,
)
from windrow_master.prices.book import PriceBook, State
from windrow_master.prices.offers import Kind, Offer
from windrow_proto.errors import InvalidInput
from windrow_proto.ports import Clock
from windrow_proto.redact import redacted
from windrow_proto.units import GIB, MINUTE, SECOND, Bytes, Microcents, money_text, parse_money

T = TypeVar("T")

CONNECT_S: Final = 5.0
READ_S: Final = 20.0
"""Amazon answers RunInstances within seconds; later, the answer is taken for lost and asked for again."""
CLOCK_OFF_S_MAX: Final = 240
"""Amazon refuses a request that is signed more than five minutes off."""
SAID_MAX: Final = 300
CONSOLE_CHARS: Final = 64 * 1024
NO_INSTANCE: Final = "i-00000000000000000"

CODES: Final = {
    code: reason
    for reason, codes in {
        RefusedFor.CAPACITY: "InsufficientInstanceCapacity InsufficientCapacity InsufficientHostCapacity Unsupported "
        "InsufficientReservedInstanceCapacity InsufficientFreeAddressesInSubnet UnfulfillableCapacity",
        RefusedFor.QUOTA: "InstanceLimitExceeded VcpuLimitExceeded MaxSpotInstanceCountExceeded VolumeLimitExceeded "
        "AddressLimitExceeded NetworkInterfaceLimitExceeded ResourceLimitExceeded",
        RefusedFor.AUTH: "AuthFailure UnauthorizedOperation AccessDenied AccessDeniedException InvalidClientTokenId "
        "SignatureDoesNotMatch ExpiredToken ExpiredTokenException RequestExpired OptInRequired PendingVerification "
        "UnrecognizedClientException MissingAuthenticationToken IncompleteSignature InvalidSignatureException Blocked",
        RefusedFor.PRICE: "SpotMaxPriceTooLow InvalidSpotPrice",
        RefusedFor.LIMIT: "RequestLimitExceeded Throttling ThrottlingException RequestThrottled",
    }.items()
    for code in codes.split()
}
"""Amazon's codes in our five words, some of which come with a status that would else say: nobody knows."""
STATES: Final = {
    "pending": MachineState.PENDING,
    "running": MachineState.RUNNING,
    "shutting-down": MachineState.STOPPING,
    "stopping": MachineState.STOPPING,
    "stopped": MachineState.STOPPED,
    "terminated": MachineState.TERMINATED,
}
IS_FREE: Final = [{"Name": "status", "Values": ["available"]}]
MADE_BESIDE: Final[tuple[tuple[str, str, list[dict[str, Any]], str, str, str], ...]] = (
    ("volume", "describe_volumes", IS_FREE, "Volumes", "VolumeId", "delete_volume"),
    ("interface", "describe_network_interfaces", IS_FREE, "NetworkInterfaces", "NetworkInterfaceId",
     "delete_network_interface"),
    ("address", "describe_addresses", [], "Addresses", "AllocationId", "release_address"),
)  # fmt: skip
"""What may be left of a machine: how it is listed, with which further filter, and how it is deleted."""
QUOTA_OF_GPUS: Final = "L-DB2E81BA"
"""vCPUs of running on-demand machines of the families G and VT."""
UBUNTU: Final = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
DEEP_LEARNING: Final = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"  # with NVIDIA's driver
)

_ENDED: Final = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_IMAGE: Final = re.compile(r"ami-[0-9a-f]{8,17}|/[A-Za-z0-9_./-]{1,300}")
_SUBNET: Final = re.compile(r"subnet-[0-9a-f]{8,17}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ec2Settings:
    """image, image_gpu: an AMI, or the name of the parameter at Amazon that names one. subnets: of which the one of a
    machine's zone is taken; empty: the region's default network. endpoint: another address, of an emulator. Without
    access_key the credentials are those that Amazon's own library finds."""

    region: str
    image: str = UBUNTU
    image_gpu: str = DEEP_LEARNING
    disk_gib: int = 100
    subnets: tuple[str, ...] = ()
    endpoint: str | None = None
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


def read_settings(settings: Mapping[str, str], secrets: Mapping[str, str]) -> Ec2Settings:
    """The settings and secrets of an operator. Raises InvalidInput."""
    subnets = tuple(settings.get("subnets", "").replace(",", " ").split())
    disk, endpoint = settings.get("disk_gib") or "100", settings.get("endpoint") or None
    found = Ec2Settings(
        region=settings.get("region", ""),
        image=settings.get("image") or UBUNTU,
        image_gpu=settings.get("image_gpu") or DEEP_LEARNING,
        disk_gib=int(disk) if disk.isascii() and disk.isdecimal() and len(disk) < 6 else 0,
        subnets=subnets,
        endpoint=endpoint,
        access_key=secrets.get("aws_access_key_id", ""),
        secret_key=secrets.get("aws_secret_access_key", ""),
        session_token=secrets.get("aws_session_token", ""),
    )
    if not _REGION.fullmatch(found.region):
        raise InvalidInput("region is not a region of Amazon, such as eu-central-1.")
    if not (_IMAGE.fullmatch(found.image) and _IMAGE.fullmatch(found.image_gpu)):
        raise InvalidInput("image and image_gpu are an image (ami-...) or the name of a parameter (/aws/service/...).")
    if not 8 <= found.disk_gib <= 16_384:
        raise InvalidInput("disk_gib is a whole number from 8 to 16384.")
    if not all(map(_SUBNET.fullmatch, subnets)):
        raise InvalidInput("subnets are names such as subnet-0123456789abcdef0, with commas between them.")
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise InvalidInput("endpoint is an http or https address.")
    if bool(found.access_key) != bool(found.secret_key):
        raise InvalidInput("aws_access_key_id and aws_secret_access_key are given together, or neither.")
    return found


class Ec2:
    """One account of Amazon in one region."""

    kind = "ec2"
    list_lag_ns = 2 * MINUTE

    def __init__(self, settings: Ec2Settings, clock: Clock, book: PriceBook, *, read_s: float = READ_S) -> None:
        """read_s: so long a call waits for each part of its answer."""
        self._settings, self._clock, self._book, self._read_s = settings, clock, book, read_s
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._images: dict[str, Mapping[str, Any]] = {}
        self._subnets: Mapping[str, str] | None = None

    # ----- the verbs -----

    async def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        """The types in the price book that Amazon has in this region, for each of its zones."""
        size = replace(wanted, regions=frozenset(), zones=frozenset(), kinds=frozenset(), offer_id="")
        rows = {
            name: row
            for name, row in self._rows().items()
            if size.takes(_offer(row, "", Kind.ON_DEMAND, row.per_hour, _read_on(row)))
            and wanted.offer_id.split("/")[0] in ("", name)
        }
        if not rows or (wanted.regions and self._settings.region not in wanted.regions):
            return []
        zones = await self._zones(list(rows))
        found = [
            _offer(rows[name], zone, Kind.ON_DEMAND, rows[name].per_hour, _read_on(rows[name])) for name, zone in zones
        ]
        if not wanted.kinds or Kind.SPOT in wanted.kinds:
            prices, today = await self._spot_prices(list(rows)), self._today()
            found += [
                _offer(rows[name], zone, Kind.SPOT, prices[name, zone], today)
                for name, zone in zones
                if (name, zone) in prices
            ]
        return in_order(wanted, found)

    async def provision(self, order: Order) -> Machine:
        """One machine, in the zone of the offer. A spot machine may cost up to `dearest_per_hour`."""
        name, zone, kind = _parts(order.offer.offer_id)
        row = self._rows().get(name)
        if row is None:
            raise Refused(RefusedFor.PRICE, f"There is no current price of {name} in {self._settings.region}.")
        if kind is Kind.ON_DEMAND and row.per_hour > order.dearest_per_hour:
            raise Refused(RefusedFor.PRICE, f"{name} costs {money_text(row.per_hour)} USD an hour now.")
        if len(order.user_data.encode()) > USER_DATA_MAX:
            raise Refused(RefusedFor.LIMIT, f"Amazon takes {USER_DATA_MAX} bytes of user data at most.")
        asked = await self._request(order, name, zone, kind, is_gpu=row.gpu_count > 0)
        made = await self._ask(lambda: self._client("ec2").run_instances(**asked))
        return _machine(made["Instances"][0])

    async def describe(self, market_id: str) -> Sequence[Machine]:
        """By the market's tag, all pages."""
        pages = await self._pages("describe_instances", Filters=_of_market(market_id))
        return [_machine(one) for page in pages for group in page["Reservations"] for one in group["Instances"]]

    async def terminate(self, machine_id: str) -> None:
        """Ask for the end of an instance."""
        await self._gone(lambda: self._client("ec2").terminate_instances(InstanceIds=[machine_id]))

    async def leftovers(self, market_id: str) -> Sequence[Leftover]:
        """Volumes, interfaces and addresses with the market's tag that no machine uses."""
        found = []
        for kind, call, is_free, those, name, _ in MADE_BESIDE:
            for page in await self._pages(call, Filters=[*_of_market(market_id), *is_free]):
                found += [_leftover(kind, one[name], one) for one in page[those] if not one.get("AssociationId")]
        return found

    async def remove(self, leftover: Leftover) -> None:
        """Delete it."""
        ((name, call),) = ((name, call) for kind, *_, name, call in MADE_BESIDE if kind == leftover.kind)
        await self._gone(lambda: getattr(self._client("ec2"), call)(**{name: leftover.leftover_id}))

    async def console(self, machine_id: str) -> str:
        """The last 64 KiB at most."""
        try:
            said = await self._ask(lambda: self._client("ec2").get_console_output(InstanceId=machine_id))
        except _Unknown:
            return ""
        return str(said.get("Output") or "")[-CONSOLE_CHARS:]

    async def check(self) -> Sequence[Finding]:
        """Ask as buying would, dry. Without credentials nothing else is asked."""
        first = await _found("credentials", self._account(), "Give an access key of an IAM user, or renew it.")
        if not first.is_good:
            return [first]
        return [
            first,
            await _found("clock", self._clock_said(), "Set this machine's clock: Amazon refuses what is signed late."),
            await _found("image", self._images_said(), "Give image and image_gpu that this region has."),
            await _found("permissions", self._dry_runs(), "Allow the actions of docs/clouds.md to these credentials."),
            await _found("quota", self._quota(), "Ask Amazon for more vCPUs of the families G and VT."),
        ]

    async def close(self) -> None:
        """Close the connections."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    # ----- what is asked -----

    def _rows(self) -> Mapping[str, Offer]:
        """The current on-demand prices of this region, by instance type."""
        return {
            one.offer.name: one.offer
            for one in self._book.find(self._today(), kind=Kind.ON_DEMAND)
            if one.state is State.CURRENT
            and (one.offer.provider.name, one.offer.region) == ("aws", self._settings.region)
        }

    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock.wall_ns() // SECOND, UTC).date()

    async def _zones(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Which type is in which zone, of those where machines may be bought."""
        filters = [{"Name": "instance-type", "Values": names}]
        pages = await self._pages("describe_instance_type_offerings", LocationType="availability-zone", Filters=filters)
        mine = await self._subnet_of() if self._settings.subnets else None
        return [
            (one["InstanceType"], one["Location"])
            for page in pages
            for one in page["InstanceTypeOfferings"]
            if mine is None or one["Location"] in mine
        ]

    async def _spot_prices(self, names: Sequence[str]) -> Mapping[tuple[str, str], Microcents]:
        """The price of this moment, by type and zone."""
        pages = await self._pages(
            "describe_spot_price_history",
            InstanceTypes=names,
            ProductDescriptions=["Linux/UNIX"],
            StartTime=datetime.fromtimestamp(self._clock.wall_ns() / SECOND, UTC),
        )
        found: dict[tuple[str, str], tuple[datetime, Microcents]] = {}
        for one in (one for page in pages for one in page["SpotPriceHistory"]):
            where, price = (one["InstanceType"], one["AvailabilityZone"]), _money(one["SpotPrice"])
            if price and (where not in found or found[where][0] < one["Timestamp"]):
                found[where] = (one["Timestamp"], price)
        return {where: price for where, (_, price) in found.items()}

    async def _request(self, order: Order, name: str, zone: str, kind: Kind, *, is_gpu: bool) -> dict[str, Any]:
        image = await self._image(self._settings.image_gpu if is_gpu else self._settings.image)
        tags = [{"Key": key, "Value": value} for key, value in order.tags.items()]
        tagged = ["instance", "volume", "network-interface"]
        disk = {"VolumeSize": self._settings.disk_gib, "VolumeType": "gp3", "Encrypted": True}
        disk["DeleteOnTermination"] = True
        asked: dict[str, Any] = {
            "MinCount": 1,
            "MaxCount": 1,
            "ClientToken": order.purchase_id,
            "ImageId": image["ImageId"],
            "InstanceType": name,
            "UserData": order.user_data,
            "Placement": {"AvailabilityZone": zone},
            "InstanceInitiatedShutdownBehavior": "terminate",
            "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "BlockDeviceMappings": [{"DeviceName": image["RootDeviceName"], "Ebs": disk}],
        }
        if kind is Kind.SPOT:
            ends = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
            price = money_text(order.dearest_per_hour)
            asked["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": {**ends, "MaxPrice": price}}
            tagged.append("spot-instances-request")
        if self._settings.subnets:
            subnet = (await self._subnet_of()).get(zone)
            if subnet is None:
                raise Refused(RefusedFor.LIMIT, f"None of the subnets of this backend is in {zone}.")
            asked["SubnetId"] = subnet
        return asked | {"TagSpecifications": [{"ResourceType": one, "Tags": tags} for one in tagged]}

    async def _image(self, given: str) -> Mapping[str, Any]:
        """The image of this name or parameter; asked once."""
        if given not in self._images:
            name = given
            if given.startswith("/"):
                try:
                    said = await self._ask(lambda: self._client("ssm").get_parameter(Name=given))
                except _Unknown:
                    raise Refused(RefusedFor.LIMIT, f"This region has no parameter {given}.") from None
                name = said["Parameter"]["Value"]
            found = await self._ask(lambda: self._client("ec2").describe_images(ImageIds=[name]))
            if not found["Images"] or found["Images"][0].get("State") != "available":
                raise Refused(RefusedFor.LIMIT, f"The image {name} is not available in this region.")
            self._images[given] = found["Images"][0]
        return self._images[given]

    async def _subnet_of(self) -> Mapping[str, str]:
        """The subnet to use, by zone."""
        if self._subnets is None:
            ids = list(self._settings.subnets)
            found = await self._ask(lambda: self._client("ec2").describe_subnets(SubnetIds=ids))
            self._subnets = {one["AvailabilityZone"]: one["SubnetId"] for one in found["Subnets"]}
        return self._subnets

    # ----- what `check` says -----

    async def _account(self) -> str:
        found = await self._ask(lambda: self._client("sts").get_caller_identity())
        where = f"the emulator at {self._settings.endpoint}" if self._settings.endpoint else "Amazon"
        return f"Account {found['Account']} of {where}, as {found['Arn']}."

    async def _clock_said(self) -> str:
        found = await self._ask(lambda: self._client("sts").get_caller_identity())
        there = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
        off_s = round(self._clock.wall_ns() / SECOND - there.timestamp())
        if abs(off_s) > CLOCK_OFF_S_MAX:
            raise Refused(RefusedFor.AUTH, f"This clock is {off_s} s off Amazon's.")
        return f"This clock is {off_s} s off Amazon's."

    async def _images_said(self) -> str:
        found = [await self._image(given) for given in dict.fromkeys((self._settings.image, self._settings.image_gpu))]
        return " ".join(f"{one['ImageId']} ({one.get('Name', 'without a name')})." for one in found)

    async def _dry_runs(self) -> str:
        image = await self._image(self._settings.image)
        ec2, tags = self._client, [{"Key": TAG_MARKET, "Value": "check"}]
        tagged = [{"ResourceType": one, "Tags": tags} for one in ("instance", "volume", "network-interface")]
        run = {"ImageId": image["ImageId"], "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
        asked: Sequence[Callable[[], object]] = (
            lambda: ec2("ec2").run_instances(**run, TagSpecifications=tagged, DryRun=True),
            lambda: ec2("ec2").terminate_instances(InstanceIds=[NO_INSTANCE], DryRun=True),
            lambda: ec2("ec2").describe_instances(Filters=_of_market("check"), DryRun=True),
            lambda: ec2("ec2").describe_volumes(Filters=_of_market("check"), DryRun=True),
            lambda: ec2("ec2").describe_network_interfaces(Filters=_of_market("check"), DryRun=True),
            lambda: ec2("ec2").describe_addresses(Filters=_of_market("check"), DryRun=True),
            lambda: ec2("ec2").get_console_output(InstanceId=NO_INSTANCE, DryRun=True),
        )
        for one in asked:
            await self._gone(one)
        return "These credentials may buy, tag, look at and end machines."

    async def _quota(self) -> str:
        try:
            asked = {"ServiceCode": "ec2", "QuotaCode": QUOTA_OF_GPUS}
            found = await self._ask(lambda: self._client("service-quotas").get_service_quota(**asked))
        except (Refused, Doubtful):
            return "Not known: Amazon does not tell it to these credentials."
        if not found["Quota"]["Value"]:
            raise Refused(RefusedFor.QUOTA, "This account may have no GPU machines on demand.")
        return f"{found['Quota']['Value']:.0f} vCPUs of GPU machines on demand."

    # ----- how -----

    def _page(self, call: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        page: Mapping[str, Any] = getattr(self._client("ec2"), call)(**asked)
        return page

    def _client(self, service: str) -> Any:
        """boto3's client, made once; from a thread. Raises Refused where the extra is not installed."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._made(service)
            return self._clients[service]

    def _made(self, service: str) -> Any:
        try:
            import boto3
            import botocore.config
            import botocore.session
        except ImportError as error:
            raise Refused(RefusedFor.LIMIT, "EC2 needs a package: python -m pip install boto3") from error
        for name in ("boto3", "botocore", "urllib3"):  # below it they log whole requests, with their join tokens
            logging.getLogger(name).setLevel(logging.INFO)
        known = self._settings
        config = botocore.config.Config(
            connect_timeout=CONNECT_S, read_timeout=self._read_s, retries={"total_max_attempts": 1}
        )
        core = botocore.session.get_session()
        core.register_component("data_loader", _descriptions())
        session = boto3.session.Session(
            region_name=known.region,
            aws_access_key_id=known.access_key or None,
            aws_secret_access_key=known.secret_key or None,
            aws_session_token=known.session_token or None,
            botocore_session=core,
        )
        return session.client(service, endpoint_url=known.endpoint, config=config)

    async def _ask(self, call: Callable[[], T]) -> T:
        """Run one call on a thread. Raises Refused or Doubtful, which name no secret."""
        try:
            async with asyncio.timeout(CONNECT_S + 3 * self._read_s):
                return await asyncio.to_thread(call)
        except Refused:
            raise
        except TimeoutError:
            raise Doubtful("Amazon did not answer in time.") from None
        except Exception as error:
            raise _translated(error, (self._settings.secret_key, self._settings.session_token)) from None

    async def _gone(self, call: Callable[[], object]) -> None:
        """The same, where what is not there is fine."""
        try:
            await self._ask(call)
        except _Unknown:
            return

    async def _pages(self, call: str, **asked: Any) -> Sequence[Mapping[str, Any]]:
        """All pages, each asked for within the deadline."""
        found: list[Mapping[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            page = await self._ask(partial(self._page, call, asked | more))
            found.append(page)
            if not page.get("NextToken"):
                return found
            more = {"NextToken": page["NextToken"]}


@cache
def _descriptions() -> Any:
    """Amazon's description of its services, megabytes of it: once for all backends."""
    import botocore.loaders

    return botocore.loaders.create_loader()


class _Unknown(Refused):
    """The call names something that is not there, or was a dry run."""

    def __init__(self, said: str) -> None:
        super().__init__(RefusedFor.LIMIT, said)


async def _found(what: str, said: Awaitable[str], way_out: str) -> Finding:
    try:
        return Finding(what, True, await said)
    except (Refused, Doubtful) as no:
        return Finding(what, False, str(no), way_out)


def _translated(error: Exception, secrets: Iterable[str]) -> Exception:
    """One of ours for what boto3 raised; anything that is not plainly a no is doubtful."""
    import botocore.exceptions

    is_answer = isinstance(error, botocore.exceptions.ClientError)
    told: Mapping[str, Any] = getattr(error, "response", None) or {}
    code = str(told.get("Error", {}).get("Code", ""))
    said = f"{code}: {told['Error'].get('Message', '')}" if code else str(error)
    for secret in filter(None, secrets):
        said = said.replace(secret, "...")
    said = str(redacted(" ".join(said.split())))[:SAID_MAX]
    if is_answer:
        status = int(told.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))
        if code == "DryRunOperation" or code.endswith(("NotFound", "NotFoundException", ".Malformed")):
            return _Unknown(said)
        if code in CODES:
            return Refused(CODES[code], said)
        is_no = 400 <= status < 500 and code != "IdempotentParameterMismatch"  # of that purchase there is a machine
        return Refused(RefusedFor.LIMIT, said) if is_no else Doubtful(said)
    no_credentials = (
        botocore.exceptions.NoCredentialsError,
        botocore.exceptions.PartialCredentialsError,
        botocore.exceptions.CredentialRetrievalError,
        botocore.exceptions.TokenRetrievalError,
    )
    if isinstance(error, no_credentials):
        return Refused(RefusedFor.AUTH, said)
    if isinstance(error, botocore.exceptions.ParamValidationError):
        return Refused(RefusedFor.LIMIT, said)
    return Doubtful(f"Amazon gave no answer that can be read: {said}")


def _of_market(market_id: str) -> list[dict[str, Any]]:
    return [{"Name": f"tag:{TAG_MARKET}", "Values": [market_id]}]


def _money(text: str) -> Microcents | None:
    try:
        return parse_money(text)
    except ValueError:
        return None


def _parts(offer_id: str) -> tuple[str, str, Kind]:
    """Type, zone and kind of an offer. Raises Refused."""
    name, _, rest = offer_id.partition("/")
    zone, _, kind = rest.partition("/")
    if not name or not zone or kind not in (Kind.ON_DEMAND, Kind.SPOT):
        raise Refused(RefusedFor.LIMIT, f"{offer_id[:SAID_MAX]} is no offer of EC2.")
    return name, zone, Kind(kind)


def _read_on(row: Offer) -> date:
    return row.source.read_on or date.min  # a row without a date is never current


def _offer(row: Offer, zone: str, kind: Kind, price: Microcents, priced_on: date) -> MachineOffer:
    return MachineOffer(
        offer_id=f"{row.name}/{zone}/{kind}",
        kind=kind,
        gpu=row.gpu,
        gpu_count=row.gpu_count,
        cpus=int(row.vcpu or 0),
        memory_bytes=Bytes(int((row.memory_gib or 0) * GIB)),
        region=row.region,
        zone=zone,
        country=row.country,
        price_per_hour=price,
        currency="USD",
        priced_on=priced_on,
        billing=Billing(row.provider.granularity_s, row.provider.minimum_s),
    )


def _tags(found: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    return {one["Key"]: one["Value"] for one in found}


def _leftover(kind: str, leftover_id: str, one: Mapping[str, Any]) -> Leftover:
    tags = _tags(one.get("Tags") or one.get("TagSet") or ())
    return Leftover(kind, leftover_id, tags.get(TAG_MARKET, ""), PurchaseId(tags.get(TAG_PURCHASE, "")))


def _machine(one: Mapping[str, Any]) -> Machine:
    """An instance as Amazon shows it; a state that it has since invented counts as running."""
    tags, state = _tags(one.get("Tags", ())), one["State"]["Name"]
    zone, launched = one["Placement"]["AvailabilityZone"], one.get("LaunchTime")
    kind = Kind.SPOT if one.get("InstanceLifecycle") == "spot" else Kind.ON_DEMAND
    ended = _ENDED.search(one.get("StateTransitionReason") or "") if state == "terminated" else None
    epoch = tags.get(TAG_EPOCH, "")
    return Machine(
        machine_id=one["InstanceId"],
        state=STATES.get(state, MachineState.RUNNING),
        said=f"{state} {one.get('StateReason', {}).get('Message', '')}".strip()[:SAID_MAX],
        market_id=tags.get(TAG_MARKET, ""),
        purchase_id=PurchaseId(tags.get(TAG_PURCHASE, "")),
        epoch=int(epoch) if epoch.isascii() and epoch.isdecimal() else 0,
        offer_id=f"{one['InstanceType']}/{zone}/{kind}",
        zone=zone,
        launched_at_ns=None if launched is None else int(launched.timestamp()) * SECOND,
        ended_at_ns=None if ended is None else _wall_ns(ended[1]),
    )


def _wall_ns(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()) * SECOND
